"""Stories about what a head looks at: read, and put to the test on texts that their ranking didn't see."""
