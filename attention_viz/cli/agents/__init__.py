"""Tools for agents over the Model Context Protocol: the library beside models and traces that stay in memory."""
