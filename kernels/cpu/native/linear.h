// One linear's weights, and their product with the rows of a batch.
#pragma once
#include "team.h"
#include "vec.h"

constexpr int64_t BLOCK = 48;  // outputs side by side in packed bf16 weights

// w: [out, in] or packed bf16; b: [out] or null; of the type of x.
struct Linear {
    const void *w, *b;
    int64_t in, out, is_packed;

    int64_t block_size() const { return (in + 1) / 2 * 2 * BLOCK; }
};

// x: [tokens, in] -> y: [tokens, out]. Ends without a wait.
void linear(const bf16 *x, const Linear &l, bf16 *y, int64_t tokens, const Team &team);
void linear(const float *x, const Linear &l, float *y, int64_t tokens, const Team &team);
