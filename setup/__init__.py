"""Setting a machine up and proving that it is fit."""
