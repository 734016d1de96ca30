"""The app's shared page code; loads torch, transformers and plotly late, so that the first paint doesn't wait."""
