"""Pictures and sounds: opened, checked and put right, and made into what a model reads; no text."""
