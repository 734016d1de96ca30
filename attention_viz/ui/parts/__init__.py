"""The pages' shared parts: badge, downloads, notices, menu, explorer."""
