"""Inputs of single image and audio families that read none of the usual shapes."""

from collections.abc import Callable

import torch
from torch import Tensor

__all__ = ["MORE", "READS", "noise"]


def noise(*shape: int) -> Tensor:
    """Return random numbers, always the same."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1))


_GRID = torch.tensor([[1, 4, 4]])
_SIX = torch.stack(torch.meshgrid(torch.arange(6), torch.arange(6), indexing="ij"), -1).reshape(1, 36, 2)

# What a family reads, where none of the usual shapes is it; a text is put beside it as usual.
READS: dict[str, Callable[[], dict[str, Tensor]]] = {
    "clap": lambda: {"input_features": noise(1, 1, 256, 16), "is_longer": torch.tensor([[False]])},
    "clap_audio_model": lambda: {"input_features": noise(1, 1, 256, 16), "is_longer": torch.tensor([[False]])},
    "clvp": lambda: {"input_features": noise(1, 16, 64)},
    "colqwen2": lambda: {"pixel_values": noise(1, 16, 384), "image_grid_thw": _GRID},
    "csm": lambda: {"input_values": 0.1 * noise(1, 1, 4000), "input_values_cutoffs": torch.tensor([[4000]])},
    # Of a smaller one, the encoder would have a single position.
    "dab-detr": lambda: {"pixel_values": noise(1, 3, 96, 128), "pixel_mask": torch.ones(1, 96, 128).long()},
    "deepseek_vl_hybrid": lambda: {"pixel_values": noise(1, 3, 32, 32), "high_res_pixel_values": noise(1, 3, 32, 32)},
    "depth_pro": lambda: {"pixel_values": noise(1, 3, 128, 128)},
    "dots3_note_audio_encoder": lambda: {"input_features": noise(1, 16, 64),
                                         "chunk_sample_lengths": torch.tensor([64 * 160])},
    "efficientloftr": lambda: {"pixel_values": noise(1, 2, 1, 64, 64)},
    "embedding_gemma2": lambda: {"pixel_values": noise(1, 36, 192), "image_position_ids": _SIX},
    "encodec": lambda: {"input_values": 0.1 * noise(1, 1, 4000)},
    "fun_asr_nano": lambda: {"input_features": noise(1, 12, 112), "input_features_mask": torch.ones(1, 12)},
    "fun_asr_nano_encoder": lambda: {"input_features": noise(1, 12, 112), "input_features_mask": torch.ones(1, 12)},
    "fuyu": lambda: {"pixel_values": noise(1, 16, 192)},
    "gemma3n_vision": lambda: {"pixel_values": noise(1, 3, 64, 64)},
    "glpn": lambda: {"pixel_values": noise(1, 3, 64, 64)},
    "gemma4": lambda: {"pixel_values": noise(1, 36, 192), "image_position_ids": _SIX},
    "gemma4_audio": lambda: {"input_features": noise(1, 64, 16), "attention_mask": torch.ones(1, 64).bool()},
    "gemma4_unified": lambda: {"pixel_values": noise(1, 36, 1728), "image_position_ids": _SIX},
    "gemma4_vision": lambda: {"pixel_values": noise(1, 36, 192),
                              "pixel_position_ids": _SIX},
    "glm_image": lambda: {
        "pixel_values": noise(16, 192),
        "image_grid_thw": torch.tensor([[1, 4, 4], [1, 4, 4]]),
        "images_per_sample": torch.tensor([2]),
    },
    "granite4_vision": lambda: {"pixel_values": noise(1, 2, 3, 32, 32), "image_sizes": torch.tensor([[32, 32]])},
    "granite_docling": lambda: {"pixel_values": noise(1, 1, 3, 32, 32),
                                "pixel_attention_mask": torch.ones(1, 1, dtype=torch.bool)},
    "granite_speech": lambda: {"input_features": noise(1, 32, 16), "input_features_mask": torch.ones(1, 9).bool()},
    "granite_speech_plus": lambda: {"input_features": noise(1, 32, 16), "input_features_mask": torch.ones(1, 9).bool()},
    "hiera": lambda: {"pixel_values": noise(1, 3, 64, 64)},
    "hunyuan_vl": lambda: {"pixel_values": noise(16, 192), "image_grid_thw": _GRID},
    "idefics": lambda: {"pixel_values": noise(1, 1, 3, 32, 32),
                        "image_attention_mask": torch.ones(1, 7, 1, dtype=torch.long)},
    "inkling2": lambda: {"pixel_values": noise(16, 16, 16, 3), "image_grid_thw": _GRID},
    "inkling2_vision": lambda: {"pixel_values": noise(16, 16, 16, 3), "image_grid_thw": _GRID},
    "inkling_mm_model": lambda: {"pixel_values": noise(4, 2, 40, 40, 3)},
    "inkling_vision": lambda: {"pixel_values": noise(1, 2, 40, 40, 3)},
    "instructblipvideo": lambda: {"pixel_values": noise(1, 4, 3, 32, 32)},
    "kimi_k25": lambda: {"pixel_values": noise(16, 3, 8, 8), "image_grid_thw": _GRID},
    "kosmos-2": lambda: {"pixel_values": noise(1, 3, 32, 32),
                         "image_embeds_position_mask": torch.tensor([[0, 1, 1, 1, 1, 1, 0]])},
    "levit": lambda: {"pixel_values": noise(1, 3, 128, 128)},
    "lfm2_vl": lambda: {"pixel_values": noise(1, 16, 192), "spatial_shapes": torch.tensor([[4, 4]]),
                        "pixel_attention_mask": torch.ones(1, 16, dtype=torch.long)},
    "lightglue": lambda: {"pixel_values": noise(1, 2, 1, 64, 64)},
    "llava_next": lambda: {"pixel_values": noise(1, 2, 3, 32, 32), "image_sizes": torch.tensor([[32, 32]])},
    "mimi": lambda: {"input_values": 0.1 * noise(1, 1, 4000)},
    "minicpm_ocr": lambda: {"pixel_values": noise(1, 3, 8, 128), "target_sizes": torch.tensor([[4, 4]])},
    "minicpm_ocr_vision": lambda: {"pixel_values": noise(1, 3, 8, 128), "target_sizes": torch.tensor([[4, 4]])},
    "minicpmv4_6": lambda: {"pixel_values": noise(1, 3, 8, 128), "target_sizes": torch.tensor([[4, 4]])},
    "minicpmv4_7": lambda: {"pixel_values": noise(1, 3, 8, 128), "target_sizes": torch.tensor([[4, 4]])},
    "minicpmv4_7_vision": lambda: {"pixel_values": noise(1, 3, 8, 128), "target_sizes": torch.tensor([[4, 4]])},
    "mllama": lambda: {
        "pixel_values": noise(1, 1, 4, 3, 32, 32),
        "aspect_ratio_ids": torch.ones(1, 1, dtype=torch.long),
        "aspect_ratio_mask": torch.ones(1, 1, 4, dtype=torch.long),
        "cross_attention_mask": torch.ones(1, 7, 1, 4, dtype=torch.long),
    },
    "mllama_vision_model": lambda: {
        "pixel_values": noise(1, 1, 4, 3, 32, 32),
        "aspect_ratio_ids": torch.ones(1, 1, dtype=torch.long),
        "aspect_ratio_mask": torch.ones(1, 1, 4, dtype=torch.long),
    },
    "mobilevit": lambda: {"pixel_values": noise(1, 3, 128, 128)},
    "molmo2": lambda: {
        "pixel_values": noise(1, 64, 192),
        # Which patches are put together: 16 times 2 × 2 of 8 × 8.
        "image_token_pooling": torch.arange(64).reshape(4, 2, 4, 2).transpose(1, 2).reshape(16, 4),
        "image_grids": torch.tensor([[4, 4, 0, 0]]),
        "image_num_crops": torch.tensor([[1]]),
    },
    "molmo2_vision": lambda: {"pixel_values": noise(1, 64, 192)},
    "muse_glimmer": lambda: {"pixel_values": noise(16, 384), "image_grid_thw": _GRID},
    "muse_spark": lambda: {"pixel_values": noise(16, 384), "image_grid_thw": _GRID},
    "nemo_speechlm": lambda: {"input_features": noise(1, 64, 16), "input_features_mask": torch.ones(1, 64)},
    "nemotron3_5_transcribe_audio": lambda: {"input_features": noise(1, 64, 16)},
    "nemotron_h_omni": lambda: {"pixel_values": noise(16, 192), "image_grid_hw": torch.tensor([[4, 4]])},
    "neomme": lambda: {"pixel_values": noise(1, 16, 192)},
    "neucodec": lambda: {"input_values": 0.1 * noise(1, 1, 3840), "input_features": noise(1, 12, 160)},
    "omdet-turbo": lambda: {"pixel_values": noise(1, 3, 64, 64),
                            "classes_input_ids": torch.tensor([[11, 22, 33]]),
                            "classes_attention_mask": torch.ones(1, 3, dtype=torch.long),
                            "tasks_input_ids": torch.tensor([[11, 22, 33]]),
                            "tasks_attention_mask": torch.ones(1, 3, dtype=torch.long),
                            "classes_structure": torch.tensor([1])},
    "oneformer": lambda: {"pixel_values": noise(1, 3, 64, 64), "task_inputs": torch.ones(1, 77)},
    "paddleocr_vl_vision": lambda: {"pixel_values": noise(1, 16, 3, 8, 8), "grid_thw": _GRID},
    "pe_audio_video": lambda: {"input_values": 0.1 * noise(1, 1, 4000), "pixel_values_videos": noise(1, 4, 3, 32, 32)},
    "pe_audio_video_encoder": lambda: {"input_values": 0.1 * noise(1, 1, 4000),
                                       "pixel_values_videos": noise(1, 4, 3, 32, 32)},
    # Noise and the time of its removal would be drawn anew in each run.
    "pi0": lambda: {"pixel_values": noise(1, 1, 3, 32, 32), "pixel_attention_mask": torch.ones(1, 1).bool(),
                    "noise": noise(1, 50, 32), "timestep": torch.tensor([0.5])},
    "pop2piano": lambda: {"input_features": noise(1, 16, 32)},
    "pvt": lambda: {"pixel_values": noise(1, 3, 64, 64)},
    "pvt_v2": lambda: {"pixel_values": noise(1, 3, 64, 64)},
    "qwen3_asr": lambda: {"input_features": noise(1, 16, 100), "input_features_mask": torch.ones(1, 100).long()},
    "sam": lambda: {"pixel_values": noise(1, 3, 32, 32), "input_points": torch.tensor([[[[9.0, 20.0]]]])},
    "sam2": lambda: {"pixel_values": noise(1, 3, 64, 64)},
    "seggpt": lambda: {"pixel_values": noise(1, 3, 32, 32), "prompt_pixel_values": noise(1, 3, 32, 32),
                       "prompt_masks": noise(1, 3, 32, 32)},
    "siglip2": lambda: {"pixel_values": noise(1, 16, 192), "spatial_shapes": torch.tensor([[4, 4]]),
                        "pixel_attention_mask": torch.ones(1, 16, dtype=torch.long)},
    "siglip2_vision_model": lambda: {"pixel_values": noise(1, 16, 192), "spatial_shapes": torch.tensor([[4, 4]]),
                                     "pixel_attention_mask": torch.ones(1, 16, dtype=torch.long)},
    "table-transformer": lambda: {"pixel_values": noise(1, 3, 96, 128), "pixel_mask": torch.ones(1, 96, 128).long()},
    "tvp": lambda: {"pixel_values": noise(1, 4, 3, 64, 64)},
    # Noise would be drawn anew in each run.
    "vibevoice": lambda: {"input_values": 0.1 * noise(1, 1, 4000), "padding_mask": torch.ones(1, 1000).bool(),
                          "sample": torch.tensor([False])},
    "vibevoice_asr": lambda: {"input_values": 0.1 * noise(1, 1, 4000), "sample": torch.tensor([False])},
    "video_llama_3": lambda: {"pixel_values": noise(16, 192), "image_grid_thw": _GRID,
                              "image_merge_sizes": torch.tensor([2])},
    "video_llama_3_vision": lambda: {"pixel_values": noise(16, 192), "grid_thw": _GRID,
                                     "merge_sizes": torch.tensor([2])},
    # Which patches are hidden would be drawn anew in each run.
    "vit_mae": lambda: {"pixel_values": noise(1, 3, 32, 32), "noise": noise(1, 16)},
    "vitpose_backbone": lambda: {"pixel_values": noise(1, 3, 32, 32)},
    "xclip_vision_model": lambda: {"pixel_values": noise(8, 3, 32, 32)},
    "xcodec": lambda: {"input_values": 0.1 * noise(1, 1, 4000)},
    "xcodec2": lambda: {"input_values": 0.1 * noise(1, 1, 3840), "input_features": noise(1, 12, 160)},
}  # fmt: skip

# What a family reads beside a text and a picture, by what its forward calls it.
MORE: dict[str, Tensor] = {
    "qformer_input_ids": torch.tensor([[11, 22, 33]]),
    "state": noise(1, 32),
}
