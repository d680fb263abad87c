#include "packs/speech/kernels/lattices.h"

#include <string>

#include "trireme/error.h"

namespace trireme::speech {
namespace {

[[noreturn]] void refuse_lattices(const std::string& what) {
  throw Error(ErrorKind::kInvalidArgument, "transducer: " + what);
}

void check_samples(std::size_t num_frames, std::size_t num_labels) {
  if (num_labels == num_frames) return;
  refuse_lattices("lengths of " + std::to_string(num_frames) + " samples' frames and of " +
                  std::to_string(num_labels) + " samples' labels");
}

void check_lengths(const Lattices& lattices) {
  for (std::int64_t b = 0; b < lattices.num_samples(); ++b) {
    const std::string sample = "sample " + std::to_string(b) + " has ";
    const std::int64_t frames = lattices.num_frames[b];
    const std::int64_t labels = lattices.num_labels[b];
    if (frames < 1 || frames > lattices.max_frames) {
      refuse_lattices(sample + std::to_string(frames) + " frames, expected 1 to " +
                      std::to_string(lattices.max_frames));
    }
    if (labels < 0 || labels > lattices.max_labels) {
      refuse_lattices(sample + std::to_string(labels) + " labels, expected 0 to " +
                      std::to_string(lattices.max_labels));
    }
  }
}

}  // namespace

std::int64_t Lattices::num_rows() const {
  return is_packed() ? offsets.back() : num_samples() * max_frames * (max_labels + 1);
}

std::int64_t Lattices::first_row(std::int64_t b) const {
  return is_packed() ? offsets[b] : b * max_frames * (max_labels + 1);
}

std::int64_t Lattices::frame_stride(std::int64_t b) const {
  return is_packed() ? num_positions(b) : max_labels + 1;
}

std::vector<std::int64_t> packed_offsets(std::span<const std::int32_t> num_frames,
                                         std::span<const std::int32_t> num_labels) {
  check_samples(num_frames.size(), num_labels.size());
  std::vector<std::int64_t> offsets = {0};
  for (std::size_t b = 0; b < num_frames.size(); ++b) {
    const std::int64_t rows = std::int64_t{num_frames[b]} * (std::int64_t{num_labels[b]} + 1);
    std::int64_t end = 0;
    if (__builtin_add_overflow(offsets.back(), rows, &end)) {
      refuse_lattices("sample " + std::to_string(b) + " has " + std::to_string(rows) +
                      " rows, too many behind " + std::to_string(offsets.back()));
    }
    offsets.push_back(end);
  }
  return offsets;
}

void check(const Lattices& lattices) {
  check_samples(lattices.num_frames.size(), lattices.num_labels.size());
  check_lengths(lattices);
  if (!lattices.is_packed()) return;
  const auto expected = packed_offsets(lattices.num_frames, lattices.num_labels);
  if (lattices.offsets.size() != expected.size()) {
    refuse_lattices(std::to_string(lattices.offsets.size()) + " offsets, expected " +
                    std::to_string(expected.size()) + ": one more than samples");
  }
  for (std::size_t b = 0; b < expected.size(); ++b) {
    if (lattices.offsets[b] == expected[b]) continue;
    refuse_lattices("offset " + std::to_string(b) + " is " + std::to_string(lattices.offsets[b]) +
                    ", expected " + std::to_string(expected[b]) + " from the lengths before it");
  }
}

}  // namespace trireme::speech
