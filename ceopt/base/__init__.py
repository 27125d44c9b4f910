"""What all rooms use: libraries on use, tasks side by side, frozen results, text that is safe to print."""
