// One linear's weights, and their product with the rows of a batch.
#pragma once
#include "team.h"
#include "vec.h"

class Upcoming;

constexpr int64_t BLOCK = 48;  // outputs side by side in packed weights

enum Form : int64_t { PLAIN, PACKED, CODED };

// w: [out, in], packed bf16, or one byte each (coded.h); b: [out] or null; but for bytes of the type of x.
struct Linear {
    const void *w, *b;
    int64_t in, out, form;

    int64_t block_size() const { return (in + 1) / 2 * 2 * BLOCK; }
};

// x: [tokens, in] -> y: [tokens, out]. Ends without a wait. codes: where coded rows of x go, for weights of one byte.
// upcoming: what to fetch meanwhile.
void linear(const bf16 *x, const Linear &l, bf16 *y, int64_t tokens, const Team &team, uint8_t *codes, Upcoming &upcoming);
void linear(const float *x, const Linear &l, float *y, int64_t tokens, const Team &team, uint8_t *codes, Upcoming &upcoming);
