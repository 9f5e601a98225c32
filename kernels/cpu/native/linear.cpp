// y = x W^T + b. A row's sums run over the inputs in one order, whatever the batch and the threads: its result is the
// same, bit for bit, in any company.
//
// bf16 weights are packed (kernels/packed.py) in blocks of BLOCK outputs; in a block, pairs of inputs follow each other, each
// with the BLOCK outputs side by side: one load brings 16 outputs' weights of two inputs, as the instruction that
// multiplies bf16 pairs wants them. A block stays in the second cache level while the tokens pass by, ROWS at a time,
// and the next block is fetched meanwhile.
//
// Weights that are not packed (float32, and those that come with an adapter) are read row by row.
#include "coded.h"

#include <algorithm>

#include "dot.h"
#include "upcoming.h"

namespace {

constexpr int COLUMNS = BLOCK / LANES;
#ifdef __AVX512F__
constexpr int ROWS = 8;
#else
constexpr int ROWS = 2;
#endif
constexpr int64_t STRETCH = 16;  // pairs between two decisions about fetching ahead
constexpr int64_t NEAR_ONE = 4096, NEAR_MORE = 8192;  // bytes ahead, by one row or more, where rows pass by once: measured

constexpr int TILE = 6;          // rows of x, and
constexpr int64_t STRIP = 48;    // rows of W that pass by together where the weights are not packed

INLINE u32x16 load_pairs(const bf16 *from) {
    u32x16 out;
    std::memcpy(&out, from, sizeof out);
    return out;
}

INLINE uint32_t pair_at(const bf16 *from) {
    uint32_t out;
    std::memcpy(&out, from, sizeof out);
    return out;
}

// sum + a[0] w[0] + a[1] w[1] in each lane.
INLINE f32x16 add_pair(f32x16 sum, uint32_t a, u32x16 w) {
#ifdef __AVX512BF16__
    return (f32x16)_mm512_dpbf16_ps((__m512)sum, (__m512bh)_mm512_set1_epi32(int(a)), (__m512bh)w);
#else
    sum += bits_as<float>(a << 16) * bits_as<f32x16>(w << 16);
    sum += bits_as<float>(a & 0xffff0000) * bits_as<f32x16>(w & 0xffff0000);
    return sum;
#endif
}

struct Ahead {
    const char *next;  // what will be needed when as much as here has been computed
    int turn, turns;   // this tile fetches one stretch in `turns`
    Upcoming &upcoming;
};

// Adds pairs [first, end) of one block and T rows of x. FETCH: and asks for that part of `next`, line by line: all at once
// would make the weights at hand wait.
template <int T, bool FETCH>
INLINE void stretch(const bf16 *x, int64_t in, const bf16 *w, const char *next, int64_t first, int64_t end,
                    f32x16 (*acc)[COLUMNS]) {
    for (int64_t i = first; i < end; i++) {
        u32x16 wide[COLUMNS];
        for (int c = 0; c < COLUMNS; c++) {
            if (FETCH) __builtin_prefetch(next + (i * COLUMNS + c) * 64, 0, 2);
            wide[c] = load_pairs(w + (i * BLOCK + c * LANES) * 2);
        }
        for (int t = 0; t < T; t++) {
            const uint32_t pair = pair_at(x + t * in + 2 * i);
            for (int c = 0; c < COLUMNS; c++) acc[t][c] = add_pair(acc[t][c], pair, wide[c]);
        }
    }
}

// sums of T rows of x and one block, over `in` inputs. MORE: something is fetched meanwhile; known when compiling, for
// what is not there shall not cost the inner loop a register.
template <int T, bool MORE> INLINE void tile(const bf16 *x, int64_t in, const bf16 *w, Ahead ahead, f32x16 (*sums)[COLUMNS]) {
    f32x16 acc[T][COLUMNS];
    for (int t = 0; t < T; t++)
        for (int c = 0; c < COLUMNS; c++) acc[t][c] = all(0.0f);
    const int64_t pairs = in / 2;
    int turn = ahead.turn;
    for (int64_t first = 0; first < pairs; first += STRETCH) {
        const int64_t end = std::min(first + STRETCH, pairs);
        if (MORE) ahead.upcoming.fetch();
        if (turn-- == 0) {
            turn = ahead.turns - 1;
            stretch<T, true>(x, in, w, ahead.next, first, end, acc);
        } else {
            stretch<T, false>(x, in, w, ahead.next, first, end, acc);
        }
    }
    if (in % 2)  // the weights' last pair ends with zeros; x has nothing there
        for (int t = 0; t < T; t++)
            for (int c = 0; c < COLUMNS; c++)
                acc[t][c] = add_pair(acc[t][c], x[t * in + in - 1].bits, load_pairs(w + (pairs * BLOCK + c * LANES) * 2));
    for (int t = 0; t < T; t++)
        for (int c = 0; c < COLUMNS; c++) sums[t][c] = acc[t][c];
}

template <int T, bool MORE> void tile_of(const bf16 *x, const Linear &l, int64_t block, Ahead ahead, bf16 *y) {
    f32x16 sums[T][COLUMNS];
    const bf16 *w = static_cast<const bf16 *>(l.w) + block * l.block_size(), *b = static_cast<const bf16 *>(l.b);
    tile<T, MORE>(x, l.in, w, ahead, sums);
    for (int t = 0; t < T; t++)
        for (int c = 0; c < COLUMNS; c++) {
            const int64_t at = block * BLOCK + c * LANES;
            const int count = int(l.out - at);
            if (count <= 0) break;
            store(y + t * l.out + at, b ? sums[t][c] + load(b + at, count) : sums[t][c], count);
        }
}

// One block for every token.
template <bool MORE>
void block_of(const bf16 *x, const Linear &l, int64_t block, const bf16 *next, bf16 *y, int64_t tokens,
              Upcoming &upcoming) {
    const int tiles = int((tokens + ROWS - 1) / ROWS);
    const char *far = reinterpret_cast<const char *>(next);
    const char *here = static_cast<const char *>(l.w) + block * l.block_size() * sizeof *x;
    const char *near = here + (tokens > 1 ? NEAR_MORE : NEAR_ONE);
    for (int i = 0; i < tiles; i++) {
        const Ahead ahead{tiles > 1 ? far : near, i, tiles, upcoming};
        const int64_t t = int64_t(i) * ROWS;
        const bf16 *from = x + t * l.in;
        bf16 *to = y + t * l.out;
        switch (std::min<int64_t>(ROWS, tokens - t)) {
            case 1: tile_of<1, MORE>(from, l, block, ahead, to); break;
            case 2: tile_of<2, MORE>(from, l, block, ahead, to); break;
#ifdef __AVX512F__
            case 3: tile_of<3, MORE>(from, l, block, ahead, to); break;
            case 4: tile_of<4, MORE>(from, l, block, ahead, to); break;
            case 5: tile_of<5, MORE>(from, l, block, ahead, to); break;
            case 6: tile_of<6, MORE>(from, l, block, ahead, to); break;
            case 7: tile_of<7, MORE>(from, l, block, ahead, to); break;
            case 8: tile_of<8, MORE>(from, l, block, ahead, to); break;
#endif
        }
    }
}

template <int T, class W>
void rows_of(const W *x, const W *w, const Linear &l, int64_t first, int64_t rows, W *y) {
    float sums[T * STRIP];
    const W *b = static_cast<const W *>(l.b);
    dots_of<T>(x, l.in, w, l.in, rows, sums, STRIP);
    for (int t = 0; t < T; t++)
        for (int64_t r = 0; r < rows; r++) {
            const float sum = sums[t * STRIP + r];
            y[t * l.out + first + r] = from_float<W>(b ? sum + to_float(b[first + r]) : sum);
        }
}

template <class W> void plain(const W *x, const Linear &l, W *y, int64_t tokens, const Team &team) {
    team.split((l.out + STRIP - 1) / STRIP, [&](int64_t strip) {
        const int64_t first = strip * STRIP, rows = std::min(STRIP, l.out - first);
        const W *w = static_cast<const W *>(l.w) + first * l.in;
        int64_t t = 0;
        for (; t + TILE <= tokens; t += TILE) rows_of<TILE>(x + t * l.in, w, l, first, rows, y + t * l.out);
        for (; t < tokens; t++) rows_of<1>(x + t * l.in, w, l, first, rows, y + t * l.out);
    });
}

// The block that a thread computes next, or the same again after its last.
void packed(const bf16 *x, const Linear &l, bf16 *y, int64_t tokens, const Team &team, Upcoming &upcoming) {
    const int64_t blocks = (l.out + BLOCK - 1) / BLOCK, size = l.block_size();
    upcoming.spread(team.part(blocks) * ((tokens + ROWS - 1) / ROWS) * ((l.in / 2 + STRETCH - 1) / STRETCH));
    team.split(blocks, [&](int64_t block) {
        const bf16 *next = static_cast<const bf16 *>(l.w) + std::min(block + 1, blocks - 1) * size;
        if (upcoming.is_over()) block_of<false>(x, l, block, next, y, tokens, upcoming);
        else block_of<true>(x, l, block, next, y, tokens, upcoming);
    });
}

}  // namespace

void linear(const bf16 *x, const Linear &l, bf16 *y, int64_t tokens, const Team &team, uint8_t *codes, Upcoming &upcoming) {
    if (l.form == PLAIN) return plain(x, l, y, tokens, team);
    if (l.form == PACKED) return packed(x, l, y, tokens, team, upcoming);
    code_rows(x, l.in, codes, tokens, team);
    team.wait();
    coded(codes, l, y, tokens, team, upcoming);
}

void linear(const float *x, const Linear &l, float *y, int64_t tokens, const Team &team, uint8_t *, Upcoming &) {
    plain(x, l, y, tokens, team);
}

// x: [tokens, in], w: [out, in] or in another form, b: [out] or null, y: [tokens, out], of one type.
extern "C" void veneer_linear(const void *x, const void *w, const void *b, void *y, uint8_t *codes, int64_t tokens,
                              int64_t in, int64_t out, int form, int is_bf16, int threads) {
    const Linear l{w, b, in, out, form};
    with_team(threads, [&](const Team &team) {
        Upcoming nothing;
        if (is_bf16) return linear(static_cast<const bf16 *>(x), l, static_cast<bf16 *>(y), tokens, team, codes, nothing);
        linear(static_cast<const float *>(x), l, static_cast<float *>(y), tokens, team, codes, nothing);
    });
}

// w: bf16 [out, in] -> packed, with zeros where a block or a pair is not full.
extern "C" void veneer_pack(const bf16 *w, uint32_t *packed, int64_t out, int64_t in, int threads) {
    const int64_t pairs = (in + 1) / 2;
    with_team(threads, [&](const Team &team) {
        team.split((out + BLOCK - 1) / BLOCK, [&](int64_t block) {
            for (int64_t n = 0; n < BLOCK; n++) {
                const int64_t row = block * BLOCK + n;
                uint32_t *to = packed + block * pairs * BLOCK + n;
                for (int64_t i = 0; i < pairs; i++) {
                    const uint32_t low = row < out ? w[row * in + 2 * i].bits : 0;
                    const uint32_t high = row < out && 2 * i + 1 < in ? w[row * in + 2 * i + 1].bits : 0;
                    to[i * BLOCK] = low | high << 16;
                }
            }
        });
    });
}
