"""One module per kind of input: each turns its input into the columns it states and the rows it cannot take."""
