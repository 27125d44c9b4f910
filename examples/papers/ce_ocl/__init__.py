"""Experiments of CE-OCL (Maragno, Roeber & Birbil 2022): German credit in parts A to F, Statlog heart in A to E."""
