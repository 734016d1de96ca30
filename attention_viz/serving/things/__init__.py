"""Pictures and sounds that visitors bring, and those that ship; no streamlit."""
