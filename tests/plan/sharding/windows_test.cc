#include "trireme/plan/sharding/windows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>

#include "tests/plan/sharding/layers.h"

namespace trireme::sharding {
namespace {

using test::ArgumentList;
using test::GraphBuilder;
using test::Size;
using test::ValueId;

/// Rows of the input that rows of the output come from, one by one, by the definitions in windows.h.
std::set<std::int64_t> rows_one_by_one(const Window& window, RowRange output,
                                       std::int64_t input_extent) {
  std::set<std::int64_t> rows;
  for (std::int64_t o = output.begin; o < output.end; ++o) {
    for (std::int64_t j = 0; j < window.kernel; ++j) {
      if (!window.is_transposed) {
        rows.insert(o * window.stride - window.padding + j * window.dilation);
        continue;
      }
      for (std::int64_t i = 0; i < input_extent; ++i) {
        if (i * window.stride - window.padding + j * window.dilation == o) rows.insert(i);
      }
    }
  }
  return rows;
}

std::int64_t output_extent(const Window& w, std::int64_t extent) {
  const std::int64_t reach = (w.kernel - 1) * w.dilation;
  return w.is_transposed ? (extent - 1) * w.stride - 2 * w.padding + reach + 1
                         : (extent + 2 * w.padding - reach - 1) / w.stride + 1;
}

/// Calls for windows of every kind, with the rows of each shard.
template <typename Call>
void for_windows(const Call& call) {
  for (std::int64_t kernel = 1; kernel <= 5; ++kernel) {
    for (std::int64_t stride = 1; stride <= 3; ++stride) {
      for (std::int64_t padding = 0; padding < kernel; ++padding) {
        for (std::int64_t dilation = 1; dilation <= 2; ++dilation) {
          for (const bool is_transposed : {false, true}) {
            call(Window{kernel, stride, padding, dilation, is_transposed});
          }
        }
      }
    }
  }
}

/// Padding alone, or rows at an end of the tile that nothing gives to.
void expect_refusable(const Window& window, RowRange tile, std::int64_t extent) {
  const auto gets_rows = [&](std::int64_t row) {
    const std::set<std::int64_t> rows = rows_one_by_one(window, {row, row + 1}, extent);
    return std::ranges::any_of(rows, [&](std::int64_t r) { return r >= 0 && r < extent; });
  };
  if (window.is_transposed) {
    EXPECT_FALSE(gets_rows(tile.begin) && gets_rows(tile.end - 1));
    return;
  }
  for (std::int64_t row = tile.begin; row < tile.end; ++row) EXPECT_FALSE(gets_rows(row));
}

TEST(Windows, RowsAreThoseThatWindowsTouch) {
  int num_checked = 0;
  for_windows([&](const Window& window) {
    for (const std::int64_t extent : {5, 12}) {
      const std::int64_t out = output_extent(window, extent);
      for (int num_shards = 2; num_shards <= 4 && num_shards <= out; ++num_shards) {
        for (const RowRange tile : all_tiles(out, num_shards)) {
          const auto rows = rows_for(window, tile, extent);
          const std::set<std::int64_t> touched = rows_one_by_one(window, tile, extent);
          if (!rows) {
            expect_refusable(window, tile, extent);
            continue;
          }
          ++num_checked;
          ASSERT_FALSE(touched.empty());
          const RowRange least{*touched.begin(), *touched.rbegin() + 1};
          if (!window.is_transposed || window.dilation == 1) {
            EXPECT_EQ(rows->input, least)
                << window.kernel << " " << window.stride << " " << window.padding;
          } else {  // gaps of a dilated one may lie at the edge
            EXPECT_EQ(overlap(rows->input, least), least);
            EXPECT_LE(rows->input.size(), least.size() + 2 * window.dilation);
          }
          EXPECT_GE(rows->num_made - rows->skipped, tile.size());
          EXPECT_GE(rows->skipped, 0);
        }
      }
    }
  });
  EXPECT_GT(num_checked, 1000);
}

TEST(Windows, MakesOfUnpaddedRowsWhatIsWanted) {
  for_windows([&](const Window& window) {
    const std::int64_t out = output_extent(window, 12);
    if (out < 3) return;
    for (const RowRange tile : all_tiles(out, 3)) {
      const auto rows = rows_for(window, tile, 12);
      if (!rows) continue;
      const Window unpadded{window.kernel, window.stride, 0, window.dilation, window.is_transposed};
      EXPECT_EQ(output_extent(unpadded, rows->input.size()), rows->num_made);
    }
  });
}

Size plain(std::int64_t number) { return {0, number}; }

TEST(Windows, AreReadFromArguments) {
  GraphBuilder b;
  const ValueId x = b.input("x", {3, 16, 16}), w = b.parameter("w", {4, 3, 5, 3});
  const ArgumentList rest = {{},
                             {ArgumentList{{plain(2)}, {plain(1)}}},
                             {ArgumentList{{plain(3)}, {plain(1)}}},
                             {ArgumentList{{plain(2)}, {plain(1)}}},
                             {plain(1)}};
  b.node("conv2d", {x, w}, b.batch({4, 7, 16}), {.constants = rest});
  b.node("max_pool2d", {x}, b.batch({3, 5, 5}),
         {.constants = {{ArgumentList{{plain(3)}, {plain(3)}}},
                        {ArgumentList{}},
                        {ArgumentList{{plain(0)}}},
                        {ArgumentList{{plain(1)}}},
                        {false}}});
  const graph::Graph graph = b.graph();
  EXPECT_EQ(window_of(graph, graph.nodes[0]), (Window{5, 2, 3, 2}));
  EXPECT_EQ(window_of(graph, graph.nodes[1]),
            (Window{3, 3, 0, 1, false, -std::numeric_limits<double>::infinity()}));
  graph::Node node = graph.nodes[1];
  make_unpadded(node, 5);
  const auto& padding = std::get<ArgumentList>(node.inputs[3].content);
  ASSERT_EQ(padding.size(), 2U) << "one number for both dimensions became one each";
  node = graph.nodes[0];
  make_unpadded(node, 7);
  const auto& of_rows = std::get<ArgumentList>(node.inputs[4].content);
  EXPECT_EQ(std::get<Size>(of_rows[0].content), plain(0));
  EXPECT_EQ(std::get<Size>(of_rows[1].content), plain(1));
}

// Averages that leave padding out count less at the edges of the whole.
TEST(Windows, LeaveWhatTreatsEdgesOtherwise) {
  const auto average = [](std::int64_t padding, bool counts_padding) {
    GraphBuilder b;
    const ValueId x = b.input("x", {3, 16, 16});
    const auto list = [](std::int64_t number) { return ArgumentList{{plain(number)}}; };
    b.node("avg_pool2d", {x}, b.batch({3, 8, 8}),
           {.constants = {{list(2)}, {list(2)}, {list(padding)}, {false}, {counts_padding}, {}}});
    return window_of(b.graph(), b.graph().nodes[0]).has_value();
  };
  EXPECT_TRUE(average(0, false));
  EXPECT_TRUE(average(1, true));
  EXPECT_FALSE(average(1, false));
}

TEST(Windows, UpsamplingsByWholeNumbers) {
  const auto upsampled = [](std::int64_t rows, ArgumentList scales) {
    GraphBuilder b;
    const ValueId x = b.input("x", {3, 4, 4});
    ArgumentList rest = {{ArgumentList{{plain(rows)}, {plain(8)}}}};
    rest.insert(rest.end(), scales.begin(), scales.end());
    b.node("upsample_nearest2d", {x}, b.batch({3, rows, 8}), {.constants = rest});
    return window_of(b.graph(), b.graph().nodes[0]);
  };
  EXPECT_EQ(upsampled(8, {{}, {}}), (Window{2, 2, 0, 1, true}));
  EXPECT_EQ(upsampled(12, {{graph::Real{0, 3}}, {}}), (Window{3, 3, 0, 1, true}));
  EXPECT_FALSE(upsampled(6, {{}, {}}));
  EXPECT_FALSE(upsampled(8, {{graph::Real{0, 2.1}}, {}}));
}

}  // namespace
}  // namespace trireme::sharding
