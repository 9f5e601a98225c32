// Paged attention over float32, bf16 or e3m4 pages: prefill chunks and decode alike, grouped queries, causal by position.
//
//   out[t, h] = softmax(cap(scale * q[t, h] . K[f..p])) V[f..p],   p = positions[t],   f = max(0, p + 1 - window)
//
// cap(x) = c tanh(x / c) where there is a soft cap c. Without a window f = 0.
//
// One task is a few consecutive tokens of one run and one K/V head: its keys are decoded once, sixteen at a time, for
// every query row that shares them. Softmax is online. A row visits its keys in the order of their positions, in tiles
// that depend on position alone, so neither the batch nor the cut into chunks changes its result by a bit. Models in
// bf16 have attention_pairs.cpp where the machine, the pages and the head size allow.
#include "attention.h"

#include <algorithm>
#include <type_traits>

#include "attention_pairs.h"

namespace {

constexpr int MAX_DIM = 256;
constexpr int MAX_ROWS = 48;  // query rows of a task: (tokens x heads of a group)
constexpr float NEVER = -INFINITY;

struct alignas(ALIGN) Scratch {
    float k[MAX_DIM][LANES];  // decoded keys of a tile, transposed
    float v[LANES][MAX_DIM];
    float q[MAX_ROWS][MAX_DIM];
    float out[MAX_ROWS][MAX_DIM];
    float weight[MAX_ROWS][LANES];
    float best[MAX_ROWS], total[MAX_ROWS], shrink[MAX_ROWS];
    int from[MAX_ROWS], seen[MAX_ROWS];  // a row sees keys [from, seen)
};

// WHOLE: sixteen keys and a head size that is a multiple of sixteen, so that no load needs a bound.
template <bool WHOLE, class P>
INLINE void decode(Scratch &s, const Geometry &g, const P *k, const P *v, int width) {
    for (int64_t d = 0; d < g.dim; d++) {
        const P *from = k + d * g.page_size;
        store16(s.k[d], WHOLE ? load16(from) : load(from, width));
    }
    for (int j = 0; j < (WHOLE ? LANES : width); j++)
        for (int64_t d = 0; d < g.dim; d += LANES) {
            const P *from = v + j * g.dim + d;
            store16(s.v[j] + d, WHOLE ? load16(from) : load(from, int(g.dim - d)));
        }
}

template <class P> void decode_tile(Scratch &s, const Geometry &g, const P *k, const P *v, int width) {
    if (width == LANES && g.dim % LANES == 0) return decode<true>(s, g, k, v, width);
    decode<false>(s, g, k, v, width);
}

template <int R> INLINE void scores(const Scratch &s, int row, int64_t dim, f32x16 *out) {
    f32x16 even[R], odd[R];
    for (int r = 0; r < R; r++) even[r] = odd[r] = all(0.0f);
    for (int64_t d = 0; d < dim; d += 2) {
        f32x16 first = load16(s.k[d]), second = load16(s.k[d + 1]);
        for (int r = 0; r < R; r++) {
            even[r] += s.q[row + r][d] * first;
            odd[r] += s.q[row + r][d + 1] * second;
        }
    }
    for (int r = 0; r < R; r++) out[r] = even[r] + odd[r];
}

// Folds a tile's scores of one row into its running softmax. Of the tile's keys the row sees [first, visible). A row
// that has seen nothing yet keeps its maximum at minus infinity, its sums at zero, bit for bit.
INLINE void fold(Scratch &s, int row, f32x16 score, f32x16 v_scale, int first, int visible) {
    const i32x16 lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    i32x16 seen = (lane < visible) & (lane >= first);
    score = seen ? score : all(NEVER);
    float top = max16(score), best = top > s.best[row] ? top : s.best[row];
    f32x16 weight = seen ? exp16(score - best) : all(0.0f);
    s.shrink[row] = best == s.best[row] ? 1.0f : exp1(s.best[row] - best);
    s.total[row] = s.total[row] * s.shrink[row] + sum16(weight);
    s.best[row] = best;
    store16(s.weight[row], seen ? weight * v_scale : all(0.0f));
}

// A tile is summed by itself before it joins the row's sum: over long contexts small parts are not lost in a large one.
template <int R, int C> INLINE void mix(Scratch &s, int row, int64_t d, int width) {
    f32x16 part[R][C];
    for (int r = 0; r < R; r++)
        for (int c = 0; c < C; c++) part[r][c] = all(0.0f);
    for (int j = 0; j < width; j++) {
        f32x16 v[C];
        for (int c = 0; c < C; c++) v[c] = load16(s.v[j] + d + c * LANES);
        for (int r = 0; r < R; r++)
            for (int c = 0; c < C; c++) part[r][c] += s.weight[row + r][j] * v[c];
    }
    for (int r = 0; r < R; r++)
        for (int c = 0; c < C; c++) {
            float *out = s.out[row + r] + d + c * LANES;
            store16(out, load16(out) * s.shrink[row + r] + part[r][c]);
        }
}

template <int R>
void rows_of_tile(Scratch &s, const Geometry &g, int row, f32x16 k_scale, f32x16 v_scale, int base, int width) {
    f32x16 score[R];
    scores<R>(s, row, g.dim, score);
    for (int r = 0; r < R; r++) {
        f32x16 scaled = score[r] * k_scale;
        if (g.rule.cap > 0.0f) scaled = soft_cap(scaled, g.rule.cap);
        fold(s, row + r, scaled, v_scale, s.from[row + r] - base, std::min(s.seen[row + r] - base, width));
    }
    int64_t d = 0;
    for (; d + 2 * LANES <= g.dim; d += 2 * LANES) mix<R, 2>(s, row, d, width);
    for (; d < g.dim; d += LANES) mix<R, 1>(s, row, d, width);
}

void tile(Scratch &s, const Geometry &g, int rows, f32x16 k_scale, f32x16 v_scale, int base, int width) {
    // Rows are in token order: those that do not see this tile yet come first, those whose window has left it last.
    int row = 0;
    while (row < rows && s.seen[row] <= base) row++;
    while (rows > row && s.from[rows - 1] >= base + width) rows--;
    for (; row + 4 <= rows; row += 4) rows_of_tile<4>(s, g, row, k_scale, v_scale, base, width);
    switch (rows - row) {
        case 3: return rows_of_tile<3>(s, g, row, k_scale, v_scale, base, width);
        case 2: return rows_of_tile<2>(s, g, row, k_scale, v_scale, base, width);
        case 1: return rows_of_tile<1>(s, g, row, k_scale, v_scale, base, width);
    }
}

int start(Scratch &s, const Geometry &g, const float *q, const Task &task, int64_t group) {
    int row = 0;
    for (int t = task.first; t < task.first + task.count; t++)
        for (int64_t h = 0; h < group; h++, row++) {
            const float *from = q + (t * g.q_heads + task.kv_head * group + h) * g.dim;
            std::copy(from, from + g.dim, s.q[row]);
            std::fill(s.out[row], s.out[row] + MAX_DIM, 0.0f);
            s.best[row] = NEVER, s.total[row] = 0.0f, s.seen[row] = g.batch.positions[t] + 1;
            s.from[row] = g.from(t);
        }
    return row;
}

// Where the tile that holds a position begins: tiles start with their page and every sixteen tokens in it.
int tile_of(int position, int64_t page_size) {
    const int at = int(position % page_size);
    return position - at + at / LANES * LANES;
}

template <class P, class T>
void attend(Scratch &s, const Geometry &g, const Planes<P> &planes, const float *q, T *out, const Task &task) {
    const int64_t group = g.group();
    const int rows = start(s, g, q, task, group), length = s.seen[rows - 1];
    const int32_t *table = g.batch.page_table + task.run * g.batch.table_width;
    for (int base = tile_of(s.from[0], g.page_size); base < length;) {
        const int64_t at = base % g.page_size;
        const int64_t head = int64_t(table[base / g.page_size]) * g.pages.kv_heads + task.kv_head;
        const int whole = int(std::min<int64_t>(LANES, g.page_size - at));
        const int width = std::min(whole, length - base);
        decode_tile(s, g, planes.k + head * g.dim * g.page_size + at, planes.v + (head * g.page_size + at) * g.dim, width);
        f32x16 k_scale = all(g.rule.scale), v_scale = all(1.0f);
        if (planes.k_scale) {
            k_scale *= E3M4_UNIT * load(planes.k_scale + head * g.page_size + at, width);
            v_scale = E3M4_UNIT * load(planes.v_scale + head * g.page_size + at, width);
        }
        tile(s, g, rows, k_scale, v_scale, base, width);
        base += whole;
    }
    for (int row = 0; row < rows; row++) {
        const int64_t t = task.first + row / group, h = task.kv_head * group + row % group;
        for (int64_t d = 0; d < g.dim; d++)
            out[(t * g.q_heads + h) * g.dim + d] = from_float<T>(s.out[row][d] / s.total[row]);
    }
}

template <class P, class T> void attend_all(const Geometry &g, const float *q, T *out, const Team &team) {
    const Planes<P> planes(g.pages);
    Scratch scratch;
    share_tasks(g, MAX_ROWS, team, [&](const Task &task) { attend(scratch, g, planes, q, out, task); });
}

}  // namespace

template <class T>
void attention(const float *q, T *out, int64_t q_heads, const Pages &pages, const Batch &batch, const Rule &rule,
               const Team &team) {
    const Geometry g{pages, batch, rule, q_heads, pages.dim, pages.page_size};
    if constexpr (std::is_same_v<T, bf16>)
        if (has_attention_pairs(g)) return attention_pairs(g, q, out, team);
    if (pages.kind == E3M4) return attend_all<e3m4>(g, q, out, team);
    if (pages.kind == BF16) return attend_all<bf16>(g, q, out, team);
    attend_all<float>(g, q, out, team);
}

template void attention<bf16>(const float *, bf16 *, int64_t, const Pages &, const Batch &, const Rule &, const Team &);
template void attention<float>(const float *, float *, int64_t, const Pages &, const Batch &, const Rule &, const Team &);

// q: float32 [tokens, q_heads, dim]; out: [tokens, q_heads, dim], bf16 or float32. Shapes of pages: kernels/paging.py.
extern "C" void veneer_attention(const float *q, void *out, void *k, void *v, float *k_scale, float *v_scale,
                                 const int32_t *positions, const int32_t *run_starts, const int32_t *page_table,
                                 int64_t runs, int64_t table_width, int64_t q_heads, int64_t kv_heads, int64_t dim,
                                 int64_t page_size, int64_t window, float scale, float cap, int kind, int out_is_bf16,
                                 int threads) {
    const Pages pages{k, v, k_scale, v_scale, kv_heads, dim, page_size, PageKind(kind)};
    const Batch batch{positions, nullptr, nullptr, run_starts, page_table, runs, table_width, run_starts[runs]};
    const Rule rule{scale, cap, window};
    with_team(runs * kv_heads > 1 ? threads : 1, [&](const Team &team) {
        if (out_is_bf16) return attention(q, static_cast<bf16 *>(out), q_heads, pages, batch, rule, team);
        attention(q, static_cast<float *>(out), q_heads, pages, batch, rule, team);
    });
}
