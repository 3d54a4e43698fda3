"""The command `hopscope`. Only this room prints."""
