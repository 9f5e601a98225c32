// How the attention kernels share out a batch: a task is a few consecutive tokens of one run and one K/V head.
#pragma once
#include <algorithm>

#include "attention.h"

struct Geometry {
    const Pages &pages;
    const Batch &batch;
    const Rule &rule;
    int64_t q_heads, dim, page_size;

    int64_t group() const { return q_heads / pages.kv_heads; }

    // The first key that a token sees.
    int from(int token) const {
        const int position = batch.positions[token];
        return rule.window > 0 ? int(std::max<int64_t>(0, position + 1 - rule.window)) : 0;
    }
};

// Pages of element type P.
template <class P> struct Planes {
    const P *k, *v;
    const float *k_scale, *v_scale;

    explicit Planes(const Pages &pages)
        : k(static_cast<const P *>(pages.k)), v(static_cast<const P *>(pages.v)), k_scale(pages.k_scale),
          v_scale(pages.v_scale) {}
};

struct Task { int32_t run, first, count, kv_head; };

// A task has at most max_rows query rows (tokens x heads of a group), or one token's.
struct Tasks {
    const Geometry &g;
    const int per_task;

    Tasks(const Geometry &g, int64_t max_rows) : g(g), per_task(int(std::max<int64_t>(1, max_rows / g.group()))) {}

    int64_t of(int32_t run) const {
        const int length = g.batch.run_starts[run + 1] - g.batch.run_starts[run];
        return (length + per_task - 1) / per_task * g.pages.kv_heads;
    }

    int64_t count() const {
        int64_t total = 0;
        for (int32_t run = 0; run < g.batch.runs; run++) total += of(run);
        return total;
    }

    // The i-th, for rising i: `run` and `before`, its tasks' first, are where the last search ended.
    Task at(int64_t i, int32_t &run, int64_t &before) const {
        while (i - before >= of(run)) before += of(run++);
        const int first = g.batch.run_starts[run] + int((i - before) / g.pages.kv_heads) * per_task;
        const int count = std::min(per_task, g.batch.run_starts[run + 1] - first);
        return {run, first, count, int32_t((i - before) % g.pages.kv_heads)};
    }
};

// attend(task) for every task, each by whichever thread is free, and a wait.
template <class Attend> void share_tasks(const Geometry &g, int64_t max_rows, const Team &team, Attend attend) {
    const Tasks tasks(g, max_rows);
    int32_t run = 0;
    int64_t before = 0;
    team.share(tasks.count(), [&](int64_t i) { attend(tasks.at(i, run, before)); });
}
