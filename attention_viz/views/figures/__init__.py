"""One file per picture, named after it: each takes a trace or numbers and returns a Plotly figure."""
