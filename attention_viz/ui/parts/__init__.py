"""What several pages share: notices, exports, uploads, badges."""
