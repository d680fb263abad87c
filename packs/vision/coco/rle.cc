#include "packs/vision/coco/rle.h"

#include <algorithm>

#include "trireme/error.h"

namespace trireme::vision {
namespace {

constexpr std::int64_t kMaxPixels = (std::int64_t{1} << 32) - 1;

[[noreturn]] void fail(const std::string& problem) {
  throw Error(ErrorKind::kCorruptData, problem);
}

/// Adds counts one after the other.
class CountReader {
 public:
  explicit CountReader(ImageSize size) : size_(size) { internal::check_size(size); }

  void add(std::int64_t count) {
    if (count < 0) fail("count " + std::to_string(index_) + " of a mask is negative");
    if (index_ > 0) internal::toggle(rle_.bounds, static_cast<std::uint32_t>(position_));
    if (count > size_.num_pixels() - position_) {
      fail("the counts of a mask go beyond the " + std::to_string(size_.num_pixels()) +
           " pixels of " + to_text(size_) + " at count " + std::to_string(index_));
    }
    position_ += count;
    ++index_;
  }

  Rle take() {
    const std::int64_t num_pixels = size_.num_pixels();
    if (position_ != num_pixels) {
      fail("expected counts that sum to the " + std::to_string(num_pixels) + " pixels of " +
           to_text(size_) + ", got " + std::to_string(position_));
    }
    if (rle_.bounds.size() % 2 == 1) {
      internal::toggle(rle_.bounds, static_cast<std::uint32_t>(num_pixels));
    }
    rle_.size = size_;
    return std::move(rle_);
  }

 private:
  ImageSize size_;
  Rle rle_;
  std::int64_t position_ = 0;
  std::int64_t index_ = 0;
};

/// One number of the compressed form, at the start of `text`, which loses it.
std::int64_t take_number(std::string_view& text) {
  constexpr int kMaxCharacters = 12;  // 60 bits
  std::uint64_t number = 0;
  for (int i = 0; i < kMaxCharacters; ++i) {
    if (text.empty()) fail("the counts of a mask end within a number");
    const auto six_bits = static_cast<unsigned>(static_cast<unsigned char>(text.front())) - 48;
    if (six_bits > 63) {
      fail("the counts of a mask have the byte " +
           std::to_string(static_cast<unsigned char>(text.front())) +
           ", which is none of '0' to 'o'");
    }
    text.remove_prefix(1);
    number |= std::uint64_t{six_bits & 31} << (5 * i);
    if ((six_bits & 32) == 0) {
      if ((six_bits & 16) != 0) number |= ~std::uint64_t{0} << (5 * (i + 1));
      return static_cast<std::int64_t>(number);
    }
  }
  fail("a count of a mask has more than " + std::to_string(kMaxCharacters) + " characters");
}

void append_number(std::int64_t number, std::string& text) {
  bool has_more = true;
  while (has_more) {
    const auto five_bits = static_cast<unsigned>(number & 31);
    number >>= 5;
    has_more = (five_bits & 16) != 0 ? number != -1 : number != 0;
    text += static_cast<char>(48 + five_bits + (has_more ? 32 : 0));
  }
}

/// The mask whose pixels are one where `keep(in a, in b)`, which is false of two zeros.
template <typename Keep>
Rle combine(const Rle& a, const Rle& b, Keep keep) {
  if (a.size != b.size) {
    throw Error(ErrorKind::kInvalidArgument,
                "expected masks of one size, got " + to_text(a.size) + " and " + to_text(b.size));
  }
  Rle result{.size = a.size};
  std::size_t i = 0, j = 0;
  bool was_in = false;
  while (i < a.bounds.size() || j < b.bounds.size()) {
    const bool is_a_next =
        j == b.bounds.size() || (i < a.bounds.size() && a.bounds[i] <= b.bounds[j]);
    const std::uint32_t position = is_a_next ? a.bounds[i] : b.bounds[j];
    if (i < a.bounds.size() && a.bounds[i] == position) ++i;
    if (j < b.bounds.size() && b.bounds[j] == position) ++j;
    const bool is_in = keep(i % 2 == 1, j % 2 == 1);
    if (is_in != was_in) result.bounds.push_back(position);
    was_in = is_in;
  }
  return result;
}

template <typename Keep>
Rle combine_all(std::span<const Rle> masks, Keep keep) {
  if (masks.empty()) throw Error(ErrorKind::kInvalidArgument, "expected one mask or more, got 0");
  Rle result = masks.front();
  for (const Rle& mask : masks.subspan(1)) result = combine(result, mask, keep);
  return result;
}

}  // namespace

std::string to_text(ImageSize size) {
  return std::to_string(size.height) + " x " + std::to_string(size.width);
}

Rle from_counts(ImageSize size, std::span<const std::int64_t> counts) {
  CountReader reader(size);
  for (const std::int64_t count : counts) reader.add(count);
  return reader.take();
}

std::vector<std::uint32_t> to_counts(const Rle& rle) {
  std::vector<std::uint32_t> counts;
  std::uint32_t before = 0;
  for (const std::uint32_t bound : rle.bounds) {
    counts.push_back(bound - before);
    before = bound;
  }
  const auto num_pixels = static_cast<std::uint32_t>(rle.size.num_pixels());
  if (before < num_pixels) counts.push_back(num_pixels - before);
  return counts;
}

Rle parse_rle(ImageSize size, std::string_view text) {
  CountReader reader(size);
  std::int64_t last[2] = {};  // the one before the last first
  for (int i = 0; !text.empty(); ++i) {
    std::int64_t count = take_number(text);
    if (i > 2) count += last[0];
    reader.add(count);
    last[0] = last[1];
    last[1] = count;
  }
  return reader.take();
}

std::string to_text(const Rle& rle) {
  const std::vector<std::uint32_t> counts = to_counts(rle);
  std::string text;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    append_number(std::int64_t{counts[i]} - (i > 2 ? counts[i - 2] : 0), text);
  }
  return text;
}

Rle from_pixels(ImageSize size, std::span<const std::uint8_t> pixels) {
  internal::check_size(size);
  if (std::ssize(pixels) != size.num_pixels()) {
    throw Error(ErrorKind::kInvalidArgument, "expected the pixels of " + to_text(size) + ", got " +
                                                 std::to_string(pixels.size()));
  }
  Rle rle{.size = size};
  bool was_in = false;
  std::uint32_t position = 0;
  for (std::int64_t x = 0; x < size.width; ++x) {
    for (std::int64_t y = 0; y < size.height; ++y, ++position) {
      const bool is_in = pixels[y * size.width + x] != 0;
      if (is_in != was_in) rle.bounds.push_back(position);
      was_in = is_in;
    }
  }
  if (was_in) rle.bounds.push_back(position);
  return rle;
}

std::vector<std::uint8_t> to_pixels(const Rle& rle) {
  std::vector<std::uint8_t> pixels(rle.size.num_pixels());
  for (std::size_t run = 0; run < rle.bounds.size(); run += 2) {
    for (std::uint32_t i = rle.bounds[run]; i < rle.bounds[run + 1]; ++i) {
      pixels[i % rle.size.height * rle.size.width + i / rle.size.height] = 1;
    }
  }
  return pixels;
}

std::int64_t area(const Rle& rle) { return internal::area(rle.bounds); }

Box bounding_box(const Rle& rle) { return internal::bounding_box(rle.size.height, rle.bounds); }

Rle union_of(std::span<const Rle> masks) {
  return combine_all(masks, [](bool a, bool b) { return a || b; });
}

Rle intersection_of(std::span<const Rle> masks) {
  return combine_all(masks, [](bool a, bool b) { return a && b; });
}

namespace internal {

void check_size(ImageSize size) {
  // Each alone first: the product must not overflow.
  const bool is_ok = size.height > 0 && size.width > 0 && size.height <= kMaxPixels &&
                     size.width <= kMaxPixels / size.height;
  if (!is_ok) fail("expected a mask of 1 to 2^32 - 1 pixels, got " + to_text(size));
}

std::int64_t area(std::span<const std::uint32_t> bounds) {
  std::int64_t sum = 0;
  for (std::size_t run = 0; run < bounds.size(); run += 2) sum += bounds[run + 1] - bounds[run];
  return sum;
}

Box bounding_box(std::int64_t height, std::span<const std::uint32_t> bounds) {
  if (bounds.empty()) return {};
  const auto h = static_cast<std::uint32_t>(height);
  const std::uint32_t left = bounds.front() / h;
  const std::uint32_t right = (bounds.back() - 1) / h + 1;
  std::uint32_t top = h, bottom = 0;
  for (std::size_t run = 0; run < bounds.size(); run += 2) {
    const std::uint32_t first = bounds[run] % h;
    const std::uint32_t length = bounds[run + 1] - bounds[run];
    const bool is_in_one_column = length <= h - first;
    top = is_in_one_column ? std::min(top, first) : 0;
    bottom = is_in_one_column ? std::max(bottom, first + length) : h;
    if (top == 0 && bottom == h) break;
  }
  return {static_cast<double>(left), static_cast<double>(top), static_cast<double>(right - left),
          static_cast<double>(bottom - top)};
}

std::int64_t overlap(std::span<const std::uint32_t> a, std::span<const std::uint32_t> b) {
  std::size_t i = 0, j = 0;
  std::int64_t sum = 0;
  // Without a branch on the data: whichever run ends first is left, both where they end together.
  while (i < a.size() && j < b.size()) {
    const std::int64_t end_a = a[i + 1], end_b = b[j + 1];
    const std::int64_t begin = std::max<std::int64_t>(a[i], b[j]);
    sum += std::max<std::int64_t>(std::min(end_a, end_b) - begin, 0);
    i += end_a <= end_b ? 2 : 0;
    j += end_b <= end_a ? 2 : 0;
  }
  return sum;
}

}  // namespace internal
}  // namespace trireme::vision
