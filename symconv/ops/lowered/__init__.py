"""Operations that only rewrites make, after gradients are taken: fused, merged, or for another layout."""
