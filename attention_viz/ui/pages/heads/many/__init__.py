"""What a head does over many texts, beside the sentence on the screen; and stories about heads put to the test."""
