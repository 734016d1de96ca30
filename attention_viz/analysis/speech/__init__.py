"""What is heard and said, as spectrograms and subtitles; of numbers and tables alone, no text's and no model's."""
