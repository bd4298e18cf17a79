"""What a trained generator becomes: a finite mixture whose every answer is exact."""
