"""What can be taken away of a reading, of a picture or of a sound, above what can be of every head."""
