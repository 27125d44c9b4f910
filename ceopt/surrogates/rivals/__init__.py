"""Linear surrogates other than minimax probability machines: LIME, CLIME, LIMELS and linear support vectors."""
