"""One file a picture, named after it: each takes a trace or numbers and gives a Plotly figure."""
