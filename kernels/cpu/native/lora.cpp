// y[rows of a chunk, columns of a slice] += scaling * (x A^T) B, at the slot's true rank; where the slot has a gain or
// a shift, y becomes y * gain + shift first.
//
// One task is one (chunk, slice): it alone writes its rows and columns, so nothing is atomic and the result does not
// depend on threads, on the other chunks, or on where in a chunk a token sits.
#include "lora.h"

#include <algorithm>
#include <vector>

#include "dot.h"

namespace {

constexpr int TILE = 4;  // tokens that share one pass over A and B

// What happens to the base's output first; null where nothing does.
struct Columns {
    const float *gain, *shift;
};

// One expression whichever of the two is there: how a compiler rounds it must not depend on the tile around it.
INLINE f32x16 changed(f32x16 y, Columns columns, int64_t at, int count) {
    const f32x16 gain = columns.gain ? load(columns.gain + at, count) : all(1.0f);
    const f32x16 shift = columns.shift ? load(columns.shift + at, count) : all(0.0f);
    return y * gain + shift;
}

// sums[t][0..out) += R ranks' h * b, read along b's rows: as it lies in memory. A column's sum takes the ranks in order,
// whatever T and R.
template <int T, int R, class W>
INLINE void expand_ranks(const float *h, int64_t rank, int64_t r, const W *b, int64_t out, float *sums, int64_t stride) {
    for (int64_t at = 0; at < out; at += LANES) {
        const int count = int(out - at);
        f32x16 wide[R];
        for (int i = 0; i < R; i++) wide[i] = load(b + (r + i) * out + at, count);
        for (int i = 0; i < R; i++) __builtin_prefetch(b + (r + R + i) * out + at);
        for (int t = 0; t < T; t++) {
            f32x16 sum = load16(sums + t * stride + at);
            for (int i = 0; i < R; i++) sum += h[t * rank + r + i] * wide[i];
            store16(sums + t * stride + at, sum);
        }
    }
}

template <int T, class W>
void expand(const float *h, int64_t rank, const W *b, int64_t out, float *sums, int64_t stride) {
    std::fill(sums, sums + T * stride, 0.0f);
    int64_t r = 0;
    for (; r + 8 <= rank; r += 8) expand_ranks<T, 8>(h, rank, r, b, out, sums, stride);
    for (; r + 4 <= rank; r += 4) expand_ranks<T, 4>(h, rank, r, b, out, sums, stride);
    for (; r < rank; r++) expand_ranks<T, 1>(h, rank, r, b, out, sums, stride);
}

template <bool CHANGED, class W>
void add_row(const float *sums, int64_t out, float scaling, Columns columns, W *y) {
    for (int64_t at = 0; at < out; at += LANES) {
        const int count = int(out - at);
        f32x16 base = load(y + at, count);
        if (CHANGED) base = changed(base, columns, at, count);
        store(y + at, base + scaling * load16(sums + at), count);
    }
}

int64_t whole_lanes(int64_t out) { return (out + LANES - 1) / LANES * LANES; }

// x: [T, in]; h: room for T * (rank + whole_lanes(out)) sums.
template <int T, class W>
void tile(const W *x, int64_t in, const W *a, const W *b, int64_t rank, int64_t out, float scaling, Columns columns,
          W *const *y, float *h) {
    float *sums = h + T * rank;
    const int64_t stride = whole_lanes(out);
    dots_of<T>(x, in, a, in, rank, h, rank);
    expand<T>(h, rank, b, out, sums, stride);
    for (int t = 0; t < T; t++)
        (columns.gain || columns.shift ? add_row<true, W> : add_row<false, W>)(sums + t * stride, out, scaling, columns, y[t]);
}

template <class W> struct Call {
    W *y;
    const W *x;
    int64_t y_stride, in;
    const Table &table;
    const Segments &segments;
};

template <class W> struct Scratch {
    std::vector<W> x;
    std::vector<float> sums;
};

template <class W> void run_task(const Call<W> &c, int64_t chunk, int64_t slice, Scratch<W> &scratch) {
    const int64_t entry = int64_t(c.segments.slots[chunk]) * c.table.slices + slice, rank = c.table.ranks[entry];
    if (rank == 0) return;
    const W *a = reinterpret_cast<const W *>(c.table.pointers[entry * 4]);
    const W *b = reinterpret_cast<const W *>(c.table.pointers[entry * 4 + 1]);
    const Columns columns{reinterpret_cast<const float *>(c.table.pointers[entry * 4 + 2]),
                          reinterpret_cast<const float *>(c.table.pointers[entry * 4 + 3])};
    const int64_t column = c.table.out_offsets[slice], out = c.table.out_offsets[slice + 1] - column;
    scratch.x.resize(TILE * c.in);
    scratch.sums.resize(TILE * (rank + whole_lanes(out)));
    for (int32_t done = 0; done < c.segments.lengths[chunk];) {
        const int count = c.segments.lengths[chunk] - done >= TILE ? TILE : 1;
        W *y[TILE];
        for (int t = 0; t < count; t++) {
            const int64_t row = c.segments.order[c.segments.starts[chunk] + done + t];
            y[t] = c.y + row * c.y_stride + column;
            std::copy_n(c.x + row * c.in, c.in, scratch.x.data() + t * c.in);
        }
        auto add = count == TILE ? tile<TILE, W> : tile<1, W>;
        add(scratch.x.data(), c.in, a, b, rank, out, c.table.scalings[entry], columns, y, scratch.sums.data());
        done += count;
    }
}

}  // namespace

template <class T>
void add_lora(T *y, const T *x, int64_t out, int64_t in, const Table &table, const Segments &segments, const Team &team) {
    const Call<T> call{y, x, out, in, table, segments};
    static thread_local Scratch<T> scratch;
    team.share(segments.chunks * table.slices,
               [&](int64_t i) { run_task(call, i / table.slices, i % table.slices, scratch); });
}

template void add_lora<bf16>(bf16 *, const bf16 *, int64_t, int64_t, const Table &, const Segments &, const Team &);
template void add_lora<float>(float *, const float *, int64_t, int64_t, const Table &, const Segments &, const Team &);

// y: [tokens, y_stride], x: [tokens, in], both bf16 or both float32, as the weights. Tables: kernels/adapter_table.py.
extern "C" void veneer_add_lora(void *y, const void *x, int64_t y_stride, int64_t in, int64_t chunks, int64_t slices,
                                const int32_t *order, const int32_t *slots, const int32_t *starts,
                                const int32_t *lengths, const int32_t *ranks, const int32_t *out_offsets,
                                const int64_t *pointers, const float *scalings, int is_bf16, int threads) {
    const Table table{ranks, out_offsets, pointers, scalings, slices};
    const Segments segments{order, slots, starts, lengths, chunks};
    with_team(chunks * slices > 1 ? threads : 1, [&](const Team &team) {
        if (is_bf16) return add_lora(static_cast<bf16 *>(y), static_cast<const bf16 *>(x), y_stride, in, table, segments, team);
        add_lora(static_cast<float *>(y), static_cast<const float *>(x), y_stride, in, table, segments, team);
    });
}
