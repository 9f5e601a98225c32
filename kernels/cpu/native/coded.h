// Weights of one byte: a linear whose rows of x become integers too, of two bytes, so that bytes are multiplied with bytes.
#pragma once
#include "linear.h"

// Bytes of one coded row of x: of each group of four the lower bytes, then the upper ones; then the scale.
constexpr int64_t coded_row(int64_t in) { return (in + 3) / 4 * 8 + 4; }

// Bytes of one block of weights: groups of four inputs, gains, sums of codes.
constexpr int64_t coded_block(int64_t in) { return ((in + 3) / 4 * 4 + 8) * BLOCK; }

// Rows of x [tokens, in] as integers from 1 to 65535, 32768 standing for 0. codes: [tokens, coded_row(in)].
void code_rows(const bf16 *x, int64_t in, uint8_t *codes, int64_t tokens, const Team &team);

// y = size * gain * (codes x weights) + b. After a wait behind `code_rows`. Ends without a wait.
void coded(const uint8_t *codes, const Linear &l, bf16 *y, int64_t tokens, const Team &team, Upcoming &upcoming);
