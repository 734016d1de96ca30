"""Pictures of pictures and of sounds: weights where the patches and the frames are."""
