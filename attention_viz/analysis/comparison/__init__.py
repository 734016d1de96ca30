"""Two runs beside each other: their tokens on common axes, two heads with a number, and which heads differ most."""
