"""Changes that single image and audio families need to be built small."""

from typing import Any

__all__ = ["CHANGES", "TIMM", "merged"]


def merged(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Override one dict's entries by another's, nested dicts included."""
    found = dict(one)
    for name, value in other.items():
        inner: Any = found.get(name)
        found[name] = merged(inner, value) if isinstance(inner, dict) and isinstance(value, dict) else value
    return found


def _turned(*sections: int) -> dict[str, Any]:
    return {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "mrope_section": list(sections)}}


def _turned_by_kind(**shares: float) -> dict[str, Any]:
    usual = {"rope_type": "default", "rope_theta": 1e4}
    return {"rope_parameters": {kind: {**usual, "partial_rotary_factor": share} for kind, share in shares.items()}}


_WHOLE = {"layer_types": ["full_attention"] * 2, "num_hidden_layers": 2}
_CLIP = {"spec_size": 64, "num_mel_bins": 16, "patch_embeds_hidden_size": 16, "depths": [1, 1], "window_size": 4,
         "num_attention_heads": [2, 4], "hidden_size": 32, "num_hidden_layers": 2, "enable_fusion": False}  # fmt: skip
_SWIN = {"image_size": 32, "patch_size": 4, "embed_dim": 16, "hidden_size": 16, "depths": [1, 1], "num_heads": [2, 4],
         "window_size": 4, "num_attention_heads": [2, 4], "num_hidden_layers": 2}  # fmt: skip
# By default its weights are so small that nothing of a picture comes through.
_SAM = {"image_size": 32, "patch_size": 8, "window_size": 2, "global_attn_indexes": [1], "output_channels": 32,
        "num_pos_feats": 16, "hidden_size": 32, "initializer_range": 0.02}  # fmt: skip
_OCR = {"sam_config": {**_SAM, "downsample_channels": [16, 32]}}
_MIMI = {"upsample_groups": 32, "vector_quantization_hidden_dimension": 16, "codebook_dim": 16, "num_filters": 4,
         "num_quantizers": 4, "codebook_size": 32}  # fmt: skip
_VISION = {"hidden_size": 128}
_DINO = {"image_size": 32, "patch_size": 8, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
         "out_features": ["stage2"], "out_indices": [2]}  # fmt: skip
_GRANITE = {"input_dim": 16, "output_dim": 48, "context_size": 16, "max_pos_emb": 16, "hidden_dim": 48}
_CHUNKS = {"chunk_length": 8, "chunk_right_context": 1, "chunk_left_context": 1, "fifo_length": 4,
           "speaker_cache_update_period": 4}  # fmt: skip
_GEMMA = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 4, "head_dim": 8,
          "intermediate_size": 48, "patch_size": 8, "pooling_kernel_size": 3,
          "position_embedding_size": 64}  # fmt: skip
_LW_DETR = {"image_size": 64, "num_windows": 4, "window_block_indices": [0], "out_features": ["stage2"]}
_PROMPTED = {"hidden_size": 32, "image_size": 32, "patch_size": 8, "image_embedding_size": 4}
_DECODED = {"hidden_size": 32, "mlp_dim": 32, "iou_head_hidden_dim": 16}
# What is heard and what is meant, one beside the other.
_CODEC = {"quantization_dim": 64, "encoder_hidden_size": 4}
# By default only the last of its stages is handed on.
_LCNET = {"out_features": ["stage1", "stage2", "stage3", "stage4"], "stem_channels": [3, 8, 16],
          "block_configs": [[[3, 16, 16, 1, True]], [[3, 16, 16, 2, False]], [[3, 16, 32, 2, True]],
                            [[3, 32, 32, 2, False]]]}  # fmt: skip
# By default, these sizes of convolutions, their steps and their margins are missing.
_INTRACLASS = {"reduce_channel": [1, 1, 0], "return_channel": [1, 1, 0],
               **{f"vertical_long_to_small_conv_{name}ratio": [[size, 1], 1, [size // 2, 0]]
                  for name, size in (("long", 7), ("mid", 5), ("short", 3))},
               **{f"horizontal_small_to_long_conv_{name}ratio": [[1, size], 1, [0, size // 2]]
                  for name, size in (("long", 7), ("mid", 5), ("short", 3))},
               **{f"symmetric_conv_long_{name}ratio": [size, 1, size // 2]
                  for name, size in (("long", 7), ("mid", 5), ("short", 3))}}  # fmt: skip
_DETECTED = {"intraclass_block_config": _INTRACLASS, "scale_factor_list": [1, 2, 4, 8], "kernel_list": [3, 2, 2],
             "neck_out_channels": 32}  # fmt: skip
_VIBE = {"num_filters": 4, "downsampling_ratios": [2, 2], "depths": [1, 1, 1], "hidden_size": 8}

# Towers of the package timm.
_VIT: dict[str, Any] = {"architecture": "vit_pe_core_large_patch14_336",
        "model_args": {"embed_dim": 32, "depth": 2, "num_heads": 4, "attn_pool_num_heads": 4, "img_size": 32,
                       "patch_size": 8, "ref_feat_shape": [4, 4]}}  # fmt: skip
_VIDEO = {"vision_config": {**_VIT, "num_classes": 16}}
_REPVIT = {"architecture": "repvit_m1", "num_classes": 2,
           "model_args": {"in_chans": 3, "features_only": True, "out_indices": [0, 1, 2, 3]}}  # fmt: skip
_MOBILENET = {"model_args": {"channel_multiplier": 0.125}, "hidden_size": 2048}
TIMM: dict[str, dict[str, Any]] = {
    "edgetam": {"vision_config": {"backbone_config": _REPVIT, "fpn_hidden_size": 32,
                                  "backbone_feature_sizes": [[16, 16], [8, 8], [4, 4]]},
                "prompt_encoder_config": {"image_size": 64, "patch_size": 16}},
    "edgetam_vision_model": {"backbone_config": _REPVIT},
    "fast_vlm": {"vision_config": {"architecture": "fastvit_mci3", "hidden_size": 128,
                                   "model_args": {"inference_mode": True, "layers": [1, 1, 1, 1, 1],
                                                  "embed_dims": [16, 16, 16, 32, 64]}}},
    "gemma3n": {"vision_config": _MOBILENET},
    "gemma3n_vision": _MOBILENET,
    "omdet-turbo": {"image_size": 64, "text_projection_in_dim": 48, "text_projection_out_dim": 48,
                    "class_embed_dim": 48, "text_config": {"hidden_size": 48}, "decoder_hidden_dim": 32,
                    "vision_features_channels": [32, 32, 32],
                    "backbone_config": {"model_type": "timm_backbone", "backbone": "swin_tiny_patch4_window7_224",
                                        "out_indices": [1, 2, 3], "img_size": 64, "always_partition": True}},
    "pe_audio_video": {"audio_video_config": {"video_config": _VIDEO}},
    "pe_audio_video_encoder": {"video_config": _VIDEO},
    "pe_video": {"video_config": _VIDEO},
    "pe_video_encoder": _VIDEO,
    "perception_lm": {"image_token_id": 3, "video_token_id": 4,
                      "vision_config": {**_VIT, "model_args": {**_VIT["model_args"], "global_pool": ""}}},
    "timm_backbone": {"backbone": "resnet18"},
}  # fmt: skip

# What is said in a family's configuration instead of what all get.
CHANGES: dict[str, dict[str, Any]] = {
    **TIMM,
    "sam2": {
        "vision_config": {"backbone_config": {"hidden_size": 96}, "fpn_hidden_size": 32,
                               "backbone_feature_sizes": [[16, 16], [8, 8], [4, 4]]},
        "prompt_encoder_config": {"image_size": 64, "patch_size": 16},
    },
    "mllama_vision_model": {"intermediate_layers_indices": [0, 1]},
    "mllama": {"text_config": {"cross_attention_layers": [1]},
               "vision_config": {"intermediate_layers_indices": [0, 1], "vision_output_dim": 96}},
    "glm_image": {"vq_config": {"latent_channels": 32, "num_embeddings": 16}},
    "align": {"text_config": {"hidden_size": 640, "num_attention_heads": 4}, "projection_dim": 640},
    "aria": {"projector_patch_to_query_dict": {16: 4}},
    "blip-2": {"image_token_index": 3},
    "bridgetower": {"hidden_size": 128, "vision_config": _VISION, "text_config": _VISION},
    "chameleon": {"vocabulary_map": {"<image>": 3, **{f"IMGIMG{'ABCD'[i]}Z": 40 + i for i in range(4)}},
                  "vq_config": {"num_embeddings": 4, "resolution": 32, "base_channels": 32, "latent_channels": 32,
                                "embed_dim": 32, "channel_multiplier": [1, 2], "attn_resolutions": None}},
    "clap": {"audio_config": _CLIP},
    "clap_audio_model": _CLIP,
    "clvp": {"text_config": {"hidden_size": 128, "projection_dim": 32},
             "speech_config": {"hidden_size": 128, "projection_dim": 32},
             "decoder_config": {"feature_size": 16}},
    "cohere_compass": {"text_config": {**_turned_by_kind(full_attention=1, sliding_attention=1)},
                       "vision_config": {"deepstack_visual_indexes": [0]}},
    "cosmos3_edge": {"text_config": _turned(2, 1, 1)},
    "csm": {"codec_config": _MIMI, "num_codebooks": 4, "depth_decoder_config": {"num_codebooks": 4,
            "backbone_hidden_size": 32}},
    "deepseek_ocr2": {"text_config": {"mlp_layer_types": ["dense", "sparse"], "num_experts_per_tok": 2, "n_group": 1,
                                      "topk_group": 1},
                      "vision_config": _OCR},
    "deepseek_ocr2_vision": _OCR,
    # As at the usual sizes, its two towers read the picture in different numbers of patches.
    "deepseek_vl_hybrid": {"high_res_vision_config": {**_SAM, "patch_size": 4}},
    "depth_pro": {"patch_size": 32, "intermediate_hook_ids": [1, 0], "fusion_hidden_size": 16,
                  "intermediate_feature_dims": [16, 16], "scaled_images_feature_dims": [16, 16, 16],
                  "image_model_config": _DINO, "patch_model_config": _DINO, "fov_model_config": _DINO},
    "dots3_note": {"text_config": {"per_layer_config": {}, "mlp_layer_types": ["dense", "sparse"], "head_dim": 16,
                                   **_turned_by_kind(indexed_attention=1, sliding_attention=1, full_attention=1)},
                   "vision_config": {"per_layer_config": {}, "adapter_in_dim": 32, "adapter_out_dim": 32,
                                     "mlp_layer_types": ["dense", "dense"]},
                   "audio_config": {"adapter_input_size": 32, "adapter_out_dim": 32, "feature_size": 16}},
    "dots3_note_audio_encoder": {"adapter_input_size": 32, "adapter_out_dim": 32, "feature_size": 16},
    "dots3_note_vision_encoder": {"per_layer_config": {}, "adapter_in_dim": 32, "adapter_out_dim": 32,
                                  "mlp_layer_types": ["dense", "dense"]},
    "embedding_gemma2": {"vision_config": {"model_type": "gemma4_vision", **_GEMMA}},
    "emu3": {"vocabulary_map": {"<image>": 3, "<|extra_200|>": 4,
                                **{f"<|visual token {i:06d}|>": 40 + i for i in range(4)}},
             "vq_config": {"codebook_size": 4, "base_channels": 32, "latent_channels": 32, "embed_dim": 4,
                           "channel_multiplier": [1, 1], "num_res_blocks": 1, "z_channels": 4, "hidden_size": 32,
                           "attn_resolutions": []}},
    "ernie4_5_vl_moe": {"text_config": {"moe_intermediate_size": [48, 48], **_turned(1, 1, 2)}},
    "fun_asr_nano": {"adaptor_config": {"intermediate_size": 8}},
    "gemma3": {"mm_tokens_per_image": 16},
    "gemma4": {"text_config": {"per_layer_config": {}, **_turned_by_kind(full_attention=1, sliding_attention=1)},
               "vision_config": {"model_type": "gemma4_vision", **_GEMMA}},
    "gemma4_audio": {"subsampling_conv_channels": [16, 8]},
    "gemma4_unified": {"vision_config": {"model_type": "gemma4_unified_vision", **_GEMMA}},
    "glm5_next": {"text_config": {"index_topk": 16, "qk_rope_head_dim": 0, "head_dim": 0}},
    "glmasr": {"audio_config": {"intermediate_size": 128}},
    "granite4_vision": {"vision_config": {"hidden_size": 64}, "deepstack_layer_map": [[-1, 0]],
                        "image_grid_pinpoints": [[32, 32]], "downsample_rate": "1/2",
                        "qformer_config": {"hidden_size": 64, "encoder_hidden_size": 32, "num_attention_heads": 4,
                                           "num_hidden_layers": 2, "intermediate_size": 48,
                                           "cross_attention_frequency": 1, "model_type": "blip_2_qformer"}},
    "granite_speech": {"encoder_config": _GRANITE, "projector_config": {"encoder_hidden_size": 48}},
    "granite_speech5_ctc": {"encoder_config": {"context_size": 16}},
    "granite_speech5_encoder": {"context_size": 16},
    "granite_speech_plus": {"encoder_config": _GRANITE, "projector_config": {"encoder_hidden_size": 48}},
    "grounding-dino": {"backbone_config": _SWIN},
    "hiera": {"image_size": [64, 64]},
    "hunyuan_vl": {"text_config": _turned(1, 1, 1, 1)},
    "inkling2": {"vision_config": {"text_hidden_size": 32}},
    "inkling_mm_model": {"vision_config": {"patch_size": 40}},
    "inkling_vision": {"patch_size": 40, "text_hidden_size": 32},
    "instructblip": {"image_token_index": 3},
    "instructblipvideo": {"video_token_index": 3},
    "kimi_k25": {"projection_hidden_size": 32},
    "kosmos-2": {"latent_query_num": 5},
    "layoutlmv3": {"coordinate_size": 6, "shape_size": 4, "input_size": 32},
    "llama4": {"vision_config": {"projector_input_dim": 32, "projector_output_dim": 32, "vision_output_dim": 32,
                                 "intermediate_size": 128}},
    "llama4_vision_model": {"projector_input_dim": 32, "projector_output_dim": 32, "vision_output_dim": 32,
                            "intermediate_size": 128},
    "llava_next": {"image_grid_pinpoints": [[32, 32]]},
    "levit": {"image_size": 128, "patch_size": 16},
    "lw_detr": {"backbone_config": _LW_DETR, "projector_scale_factors": [1.0]},
    "lw_detr_vit": {"num_windows": 4, "image_size": 64, "window_block_indices": [0]},
    "mask2former": {"backbone_config": _SWIN},
    "maskformer": {"backbone_config": {**_SWIN, "image_size": 64, "depths": [1, 1, 1, 1], "num_heads": [2, 2, 2, 2],
                                       "num_attention_heads": [2, 2, 2, 2], "window_size": 2}},
    "mimi": _MIMI,
    "minicpm_ocr": {"image_token_id": 3},
    "minicpmv4_6": {"image_token_id": 3},
    "minicpmv4_7": {"image_token_id": 3},
    "moonshine_streaming": {"num_key_value_heads": 4},
    "mm-grounding-dino": {"backbone_config": _SWIN},
    "molmo2": {"image_patch_id": 3, "image_token_id": 3, "adapter_config": {"vision_feature_layer": [1, 0],
               "text_hidden_size": 32}},
    "muse_glimmer": {"out_hidden_size": 128},
    "muse_spark": {"out_hidden_size": 128, "audio_config": {"patch_sizes": [2, 2], "hidden_sizes": [32, 32],
                                                            "depths": [1, 1]}},
    "muse_spark_audio": {"patch_sizes": [2, 2], "hidden_sizes": [32, 32], "depths": [1, 1]},
    "nemo_speechlm": {"audio_config": {"diarization_config": {**_CHUNKS, "head_config": {"audio_hidden_size": 32}}}},
    "nemotron3_5_transcribe_audio": {"diarization_config": {**_CHUNKS, "head_config": {"audio_hidden_size": 32}}},
    "nemotron3_diarization": {"head_config": {"audio_hidden_size": 32}},
    "nemotron_h_omni": {"image_token_id": 3, "vision_config": {"video_temporal_patch_size": 2},
                        "vision_hidden_size": 32},
    "neomme": {**_turned_by_kind(full_attention=0.5, sliding_attention=1)},
    "oneformer": {"backbone_config": {**_SWIN, "image_size": 64, "depths": [1, 1, 1, 1], "num_heads": [2, 2, 2, 2],
                                      "window_size": 2}, "task_seq_len": 7, "text_encoder_context_length": 7},
    "neucodec": _CODEC,
    "pp_ocrv5_server_det": {**_DETECTED, "backbone_config": {"out_features": ["stage1", "stage2", "stage3", "stage4"]}},
    "pp_ocrv6_medium_det": {**_DETECTED, "backbone_config": {**_LCNET}},
    "pp_ocrv6_small_det": {"backbone_config": _LCNET, "layer_list_out_channels": [16, 16, 32, 32]},
    "qwen2_5_omni_thinker": {"vision_start_token_id": 4},
    "qwen3_asr": {"audio_config": {"output_dim": 32}},
    "qwen3_omni_moe_thinker": {"vision_start_token_id": 4},
    "qwen4_exp": {"text_config": {"indexer_n_heads": 2, "indexer_kv_heads": 1, "indexer_head_dim": 8,
                                  "indexer_budget": 8, "indexer_compress_ratio": 4}},
    "sam": {"vision_config": _SAM, "prompt_encoder_config": _PROMPTED, "mask_decoder_config": _DECODED},
    "sam3": {"vision_config": {"fpn_hidden_size": 32}},
    "sam3_lite_text": {"vision_config": {"fpn_hidden_size": 32}},
    "sam3_tracker": {"vision_config": {"fpn_hidden_size": 32, "backbone_feature_sizes": [[16, 16], [8, 8], [4, 4]]},
                     "prompt_encoder_config": _PROMPTED},
    "sam_hq": {"vision_config": _SAM, "prompt_encoder_config": _PROMPTED,
               "mask_decoder_config": {**_DECODED, "vit_dim": 32}},
    "pvt": {"image_size": 64},
    "pvt_v2": {"image_size": 64},
    "seggpt": {"image_size": [64, 32], "pretrain_image_size": 32},
    "shieldgemma2": {"mm_tokens_per_image": 16},
    "step3p7": {"text_config": {"sliding_window": 4}},
    "t5gemma2_encoder": {"mm_tokens_per_image": 16, "text_config": {"dropout_rate": 0.0}},
    "t5gemma2": {"encoder": {"mm_tokens_per_image": 16}},
    "tvp": {"max_img_size": 64, "visual_prompt_size": 4},
    "unlimited_ocr": {"vision_config": _OCR},
    "unlimited_ocr_vision": _OCR,
    "uvdoc": {"backbone_config": {"out_features": [f"stage{number}" for number in range(1, 7)]}},
    "vibevoice": {"audio_config": _VIBE, "semantic_model_config": _VIBE, "audio_token_id": 3},
    "vibevoice_acoustic_tokenizer": _VIBE,
    "vibevoice_asr": {"acoustic_tokenizer_encoder_config": _VIBE, "semantic_tokenizer_encoder_config": _VIBE},
    "videoprism": {"vision_config": {"tubelet_size": [1, 8, 8], "num_frames": 4}},
    "videoprism_vision_model": {"tubelet_size": [1, 8, 8], "num_frames": 4},
    "vipllava": {"vision_feature_layers": [-2, -1], "vision_feature_layer": [-2, -1]},
    "vitpose_backbone": {"image_size": [32, 32], "patch_size": [8, 8], "out_features": ["stage2"], "out_indices": None,
                         "num_experts": 1, "part_features": 8},
    "voxtral": {"audio_token_id": 3, "audio_config": {"intermediate_size": 128, "num_mel_bins": 16,
                                                      "max_source_positions": 32}},
    "voxtral_realtime": {"downsample_factor": 4, "audio_token_id": 3},
    "xclip": {"vision_config": {"mit_hidden_size": 32, "mit_num_attention_heads": 4, "mit_intermediate_size": 48}},
    "xcodec2": _CODEC,
}  # fmt: skip
