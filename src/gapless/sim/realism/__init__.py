"""The imperfections of real robots as pure functions, batched over worlds, exactly the identity at ideal."""
