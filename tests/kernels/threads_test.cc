// Kernels that threads share give the bits of one thread, also where sizes make many pieces.

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include "tests/kernels/random_numbers.h"
#include "trireme/base/error.h"
#include "trireme/kernels/detection/boxes.h"
#include "trireme/kernels/detection/matching.h"
#include "trireme/kernels/detection/nms.h"
#include "trireme/kernels/norm/norm.h"
#include "trireme/kernels/optimizer/adamw.h"
#include "trireme/kernels/optimizer/lamb.h"
#include "trireme/kernels/optimizer/lars.h"
#include "trireme/kernels/optimizer/novograd.h"
#include "trireme/kernels/optimizer/sgd.h"
#include "trireme/kernels/spread.h"

namespace trireme::kernels {
namespace {

using Bytes = std::vector<std::byte>;

template <typename T>
void append_bits(const std::vector<T>& values, Bytes& bytes) {
  const auto* begin = reinterpret_cast<const std::byte*>(values.data());
  bytes.insert(bytes.end(), begin, begin + values.size() * sizeof(T));
}

/// What `run` makes is the same on 1, 2 and 3 threads as on the calling thread, and is spread.
void expect_same_bits(const char* what, const std::function<Bytes(const Spread&)>& run) {
  const Bytes expected = run(on_caller);
  ASSERT_FALSE(expected.empty()) << what;
  std::int64_t most_pieces = 0;
  const Bytes backwards = run([&](std::int64_t n, const Piece& piece) {
    most_pieces = std::max(most_pieces, n);
    for (std::int64_t i = n - 1; i >= 0; --i) piece(i);
  });
  EXPECT_GT(most_pieces, 1) << what << " is not spread";
  EXPECT_TRUE(backwards == expected) << what << ", last piece first";
  for (const int num_threads : {1, 2, 3}) {
    EXPECT_TRUE(run(on_threads(num_threads)) == expected) << what << ", " << num_threads;
  }
}

constexpr std::int64_t kManyElements = 3 * (1 << 18) + 1234;

/// Three steps; `step` is given the moments m and v, the gradient and the parameter.
template <typename T, typename State, typename Step>
void expect_step(const char* what, const Step& step) {
  const std::vector<T> start = random_numbers<T>(kManyElements, 1, 0);
  expect_same_bits(what, [&](const Spread& spread) {
    std::vector<T> p = start;
    std::vector<State> m(p.size()), v(p.size());
    for (int i = 1; i <= 3; ++i) {
      const std::vector<T> g = random_numbers<T>(kManyElements, 1 + i, 0);
      step(i, g.data(), m.data(), v.data(), p.data(), spread);
    }
    Bytes made;
    append_bits(p, made);
    append_bits(m, made);
    append_bits(v, made);
    return made;
  });
}

TEST(Threads, ChangeNothingInOptimizersByElement) {
  constexpr std::int64_t n = kManyElements;
  const auto adamw_step = [](int step, const auto* g, auto* m, auto* v, auto* p,
                             const Spread& spread) {
    using T = std::remove_cvref_t<decltype(*p)>;
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(*m)>, T>) {
      adamw({}, step, g, m, v, p, n, SquareRoots<T>(nullptr), spread);
    } else {
      adamw({}, step, g, m, v, p, n, spread);
    }
  };
  expect_step<float, float>("adamw", adamw_step);
  expect_step<double, double>("adamw in f64", adamw_step);
  expect_step<float, Bf16>("adamw with bf16 moments", adamw_step);
  const auto sgd_step = [](int step, const auto* g, auto* m, auto*, auto* p, const Spread& spread) {
    sgd({.momentum = 0.9, .weight_decay = 1e-3}, step == 1, g, m, p, n, spread);
  };
  expect_step<float, float>("sgd", sgd_step);
  expect_step<float, Bf16>("sgd with bf16 moments", sgd_step);
}

TEST(Threads, ChangeNothingInRandomRounding) {
  const auto halves = [](unsigned seed) {
    std::vector<Bf16> made;
    for (const float x : random_numbers<float>(kManyElements, seed, 0)) made.push_back(to_bf16(x));
    return made;
  };
  const std::vector<Bf16> gradient = halves(1), start = halves(2);
  expect_same_bits("adamw in bf16", [&](const Spread& spread) {
    std::vector<Bf16> p = start, m(p.size()), v(p.size());
    adamw({}, 1, 99, gradient.data(), m.data(), v.data(), p.data(), kManyElements, spread);
    Bytes made;
    append_bits(p, made);
    append_bits(m, made);
    append_bits(v, made);
    return made;
  });
}

TEST(Threads, ChangeNothingInOptimizersWithNorms) {
  constexpr std::int64_t n = kManyElements;
  const auto lamb_step = [](int step, const float* g, auto* m, auto* v, float* p,
                            const Spread& spread) { lamb({}, step, g, m, v, p, n, spread); };
  expect_step<float, float>("lamb", lamb_step);
  expect_step<float, Bf16>("lamb with bf16 moments", lamb_step);
  expect_step<float, float>(
      "lars", [](int, const float* g, float* m, float*, float* p, const Spread& spread) {
        lars({.weight_decay = 1e-3}, g, m, p, n, spread);
      });
  double norm = 0;
  expect_step<float, float>(
      "novograd", [&](int step, const float* g, float* m, float*, float* p, const Spread& spread) {
        novograd({.weight_decay = 1e-3}, step, g, norm, m, p, n, spread);
      });
}

TEST(Threads, ChangeNothingInNorms) {
  const std::vector<float> x = random_numbers<float>(kManyElements, 1, 0);
  expect_same_bits("square_norm", [&](const Spread& spread) {
    Bytes made;
    append_bits(std::vector{square_norm(x.data(), kManyElements, spread)}, made);
    return made;
  });
}

struct Scene {
  std::vector<float> boxes, scores;
  std::vector<std::int64_t> classes;
};

Scene make_scene(std::int64_t n) {
  std::mt19937 random(5);
  std::uniform_real_distribution<float> place(0, 2000), extent(1, 60), score(0, 1);
  Scene scene;
  for (std::int64_t i = 0; i < n; ++i) {
    const float x = place(random), y = place(random);
    scene.boxes.insert(scene.boxes.end(), {x, y, x + extent(random), y + extent(random)});
    scene.scores.push_back(score(random));
    scene.classes.push_back(static_cast<std::int64_t>(random() % 7));
  }
  return scene;
}

TEST(Threads, ChangeNothingInSuppression) {
  const Scene scene = make_scene(40'000);
  expect_same_bits("nms", [&](const Spread& spread) {
    Bytes made;
    append_bits(nms(scene.boxes, scene.scores, {.threshold = 0.3}, spread), made);
    return made;
  });
  expect_same_bits("batched_nms", [&](const Spread& spread) {
    Bytes made;
    append_bits(batched_nms(scene.boxes, scene.scores, scene.classes, {.max_kept = 900}, spread),
                made);
    return made;
  });
}

TEST(Threads, ChangeNothingInOverlapsCodesAndMatching) {
  constexpr std::int64_t kTruth = 17, kAnchors = 40'000;
  const Scene scene = make_scene(kTruth + kAnchors);
  const float *truth = scene.boxes.data(), *anchors = truth + kTruth * 4;
  std::vector<float> overlaps(kTruth * kAnchors);
  expect_same_bits("box_overlaps", [&](const Spread& spread) {
    std::ranges::fill(overlaps, -1.0F);
    box_overlaps(truth, kTruth, anchors, kAnchors, overlaps.data(), spread);
    Bytes made;
    append_bits(overlaps, made);
    return made;
  });
  const auto match = [&](const char* what, const auto& call) {
    expect_same_bits(what, [&](const Spread& spread) {
      std::vector<std::int64_t> matches(kAnchors, -7);
      call(matches, spread);
      Bytes made;
      append_bits(matches, made);
      return made;
    });
  };
  match("match_anchors", [&](auto& matches, const Spread& spread) {
    match_anchors({.high = 0.4F, .low = 0.1F}, overlaps, kTruth, matches, spread);
  });
  match("match_ssd", [&](auto& matches, const Spread& spread) {
    match_ssd(0.3F, overlaps, kTruth, matches, spread);
  });
  expect_same_bits("box codes", [&](const Spread& spread) {
    std::vector<float> codes(kAnchors / 2 * 4), decoded(codes.size());
    const float* boxes = anchors + kAnchors / 2 * 4;
    encode_boxes({}, boxes, anchors, kAnchors / 2, codes.data(), spread);
    decode_boxes({}, codes.data(), anchors, kAnchors / 2, decoded.data(), spread);
    Bytes made;
    append_bits(codes, made);
    append_bits(decoded, made);
    return made;
  });
}

TEST(Threads, NameTheFirstBadBox) {
  Scene scene = make_scene(40'000);
  for (const std::int64_t bad : {9'000, 20'000, 33'000}) scene.boxes[bad * 4] = 1e9F;
  std::vector<float> codes(40'000 * 4);
  try {
    encode_boxes({}, scene.boxes.data(), scene.boxes.data(), 40'000, codes.data(), on_threads(3));
    ADD_FAILURE() << "was taken";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("box 9000 "), std::string::npos) << error.message();
  }
}

}  // namespace
}  // namespace trireme::kernels
