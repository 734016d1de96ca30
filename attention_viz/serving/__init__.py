"""What serves a room full of people: models, traces and runs made once for all, with limits. No streamlit."""
