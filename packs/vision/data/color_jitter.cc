#include "packs/vision/data/color_jitter.h"

#include <cmath>
#include <numbers>
#include <string>

#include "packs/vision/data/uniform.h"
#include "trireme/error.h"

namespace trireme::vision {
namespace {

using Matrix = std::array<std::array<double, 3>, 3>;
using Color = std::array<double, 3>;

constexpr Color kGrey = {0.299, 0.587, 0.114};  // of red, green and blue, by ITU-R BT.601

double grey_of(const Color& color) {
  return kGrey[0] * color[0] + kGrey[1] * color[1] + kGrey[2] * color[2];
}

/// `matrix` behind what the map does so far.
void follow(ColorMap& map, const Matrix& matrix) {
  const ColorMap before = map;
  const ColorMap step{.matrix = matrix};
  for (std::size_t column = 0; column < 3; ++column) {
    const Color moved =
        step({before.matrix[0][column], before.matrix[1][column], before.matrix[2][column]});
    for (std::size_t row = 0; row < 3; ++row) map.matrix[row][column] = moved[row];
  }
  map.offset = step(before.offset);
}

Matrix scaled(double factor) { return {{{factor, 0, 0}, {0, factor, 0}, {0, 0, factor}}}; }

/// Away from the grey of a pixel.
Matrix saturated(double factor) {
  Matrix matrix = scaled(factor);
  for (auto& row : matrix) {
    for (std::size_t c = 0; c < 3; ++c) row[c] += (1 - factor) * kGrey[c];
  }
  return matrix;
}

/// A rotation about (1, 1, 1), by Rodrigues' formula.
Matrix turned(double part) {
  const double angle = 2 * std::numbers::pi * part;
  const double same = (1 + 2 * std::cos(angle)) / 3;
  const double mean = (1 - std::cos(angle)) / 3, odd = std::sin(angle) / std::numbers::sqrt3;
  return {{{same, mean - odd, mean + odd},
           {mean + odd, same, mean - odd},
           {mean - odd, mean + odd, same}}};
}

}  // namespace

void check(const ColorJitterOptions& options) {
  const auto require = [](double value, double most, const char* name) {
    if (value >= 0 && value <= most) return;
    throw Error(ErrorKind::kInvalidArgument, std::string("colours: ") + name + " is from 0 to " +
                                                 std::to_string(most) + ", got " +
                                                 std::to_string(value));
  };
  require(options.brightness, 1, "brightness");
  require(options.contrast, 1, "contrast");
  require(options.saturation, 1, "saturation");
  require(options.hue, 0.5, "hue");
}

std::array<double, 3> ColorMap::operator()(const std::array<double, 3>& color) const {
  Color out = offset;
  for (std::size_t row = 0; row < 3; ++row) {
    for (std::size_t c = 0; c < 3; ++c) out[row] += matrix[row][c] * color[c];
  }
  return out;
}

ColorMap random_colors(const ColorJitterOptions& options, const std::array<double, 3>& mean,
                       std::uint64_t stream) {
  internal::Uniform uniform(stream);
  const auto factor = [&](double range) { return uniform.between(1 - range, 1 + range); };
  ColorMap map;
  follow(map, scaled(factor(options.brightness)));
  const double contrast = factor(options.contrast), grey = grey_of(map(mean));
  follow(map, scaled(contrast));
  for (double& offset : map.offset) offset += (1 - contrast) * grey;
  follow(map, saturated(factor(options.saturation)));
  follow(map, turned(uniform.between(-options.hue, options.hue)));
  return map;
}

}  // namespace trireme::vision
