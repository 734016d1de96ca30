"""The app's shared page code; imports torch, transformers and plotly lazily, so that the first paint doesn't wait."""
