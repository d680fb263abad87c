#include "packs/volume/data/volume_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nifti2_io.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <set>

#include "tests/base/error_of.h"
#include "tests/base/test_folder.h"
#include "trireme/base/random.h"
#include "trireme/data/read_parts.h"

namespace trireme::volume {
namespace {

using testing::HasSubstr;

using ValueAt = std::function<std::int32_t(std::int64_t z, std::int64_t y, std::int64_t x)>;

/// A file of i32 voxels.
std::string nifti_of(const VolumeShape& shape, const ValueAt& value) {
  nifti_1_header header = {};
  header.sizeof_hdr = sizeof header;
  std::memcpy(header.magic, "n+1", 4);
  header.datatype = NIFTI_TYPE_INT32;
  header.bitpix = 32;
  header.vox_offset = sizeof header + 4;
  int i = 0;
  for (const std::int64_t side : {std::int64_t{3}, shape.width, shape.height, shape.depth})
    header.dim[i++] = static_cast<short>(side);
  for (; i < 8; ++i) header.dim[i] = 1;
  for (i = 0; i < 4; ++i) header.pixdim[i] = 1;
  std::string file(reinterpret_cast<const char*>(&header), sizeof header);
  file.append(4, '\0');
  for (std::int64_t z = 0; z < shape.depth; ++z) {
    for (std::int64_t y = 0; y < shape.height; ++y) {
      for (std::int64_t x = 0; x < shape.width; ++x) {
        const std::int32_t number = value(z, y, x);
        file.append(reinterpret_cast<const char*>(&number), sizeof number);
      }
    }
  }
  return file;
}

/// 100 z + 10 y + x, so that a voxel says where it was.
std::int32_t place(std::int64_t z, std::int64_t y, std::int64_t x) {
  return static_cast<std::int32_t>(100 * z + 10 * y + x);
}

struct Patch {
  std::vector<float> image;
  std::vector<std::uint8_t> label;
};

class Volumes : public test::TestFolder {
 protected:
  static constexpr VolumeShape kShape = {9, 8, 7};

  /// Its labels are 3 in a corner of 2 x 2 x 2 voxels at (6, 5, 4), else 0.
  void write_case(const std::string& name, const VolumeShape& shape = kShape) const {
    write("images/" + name + ".nii", nifti_of(shape, place));
    write("labels/" + name + ".nii", nifti_of(shape, [](auto z, auto y, auto x) {
            return z / 2 == 3 && (y - 1) / 2 == 2 && x / 2 == 2 ? 3 : 0;
          }));
  }

  /// Intensities as they are.
  static VolumeOptions options() {
    return {.patch = {4, 3, 2}, .intensities = {-1e6F, 1e6F, 0, 1}, .random = std::nullopt};
  }

  static VolumeOptions at_random(double foreground, double flip) {
    VolumeOptions random = options();
    random.random =
        RandomPatchOptions{.foreground_share = foreground,
                           .flip_probability = flip,
                           .intensities = {.brightness_probability = 0, .noise_probability = 0}};
    return random;
  }

  VolumeSource source(const VolumeOptions& options) const {
    return {find_volumes(path("images"), path("labels")), options};
  }

  static Patch read(const VolumeSource& source, data::Sample sample) {
    Patch patch;
    const auto count = static_cast<std::size_t>(source.fields()[1].num_bytes());
    patch.image.resize(count);
    patch.label.resize(count);
    const std::span<std::byte> places[] = {std::as_writable_bytes(std::span(patch.image)),
                                           std::as_writable_bytes(std::span(patch.label))};
    source.read(sample, places);
    return patch;
  }
};

TEST_F(Volumes, TheMiddleWhereNothingIsRandom) {
  write_case("a");
  const VolumeSource middle = source(options());
  ASSERT_EQ(middle.num_samples(), 1);
  EXPECT_EQ(middle.fields()[0].shape, (std::vector<std::int64_t>{1, 4, 3, 2}));
  const Patch patch = read(middle, {0, 5});
  std::size_t i = 0;
  for (int z = 2; z < 6; ++z) {
    for (int y = 2; y < 5; ++y) {
      for (int x = 2; x < 4; ++x) EXPECT_EQ(patch.image[i++], place(z, y, x));
    }
  }
}

/// Each patch is a box of the case, mirrored or not; labels lie where their voxels do.
TEST_F(Volumes, RandomPatchesAreMirroredBoxes) {
  write_case("a");
  const VolumeSource random = source(at_random(0, 0.5));
  std::set<int> begins, mirrors;
  for (std::int64_t visit = 0; visit < 60; ++visit) {
    const Patch patch = read(random, {0, visit});
    const auto at = [&](std::size_t z, std::size_t y, std::size_t x) {
      return static_cast<int>(patch.image[(z * 3 + y) * 2 + x]);
    };
    const int dz = at(1, 0, 0) - at(0, 0, 0), dy = at(0, 1, 0) - at(0, 0, 0),
              dx = at(0, 0, 1) - at(0, 0, 0);
    ASSERT_EQ(std::abs(dz), 100);
    ASSERT_EQ(std::abs(dy), 10);
    ASSERT_EQ(std::abs(dx), 1);
    for (int i = 0; i < 24; ++i) {
      const int z = i / 6, y = i / 2 % 3, x = i % 2;
      ASSERT_EQ(at(z, y, x), at(0, 0, 0) + z * dz + y * dy + x * dx);
      const int value = at(z, y, x);
      const bool is_object =
          value / 100 / 2 == 3 && (value / 10 % 10 - 1) / 2 == 2 && value % 10 / 2 == 2;
      EXPECT_EQ(patch.label[static_cast<std::size_t>(i)], is_object ? 3 : 0) << value;
    }
    begins.insert(std::min(at(0, 0, 0), at(3, 2, 1)));
    mirrors.insert((dz < 0) * 4 + (dy < 0) * 2 + (dx < 0));
    EXPECT_EQ(read(random, {0, visit}).image, patch.image) << "a function of the visit";
  }
  EXPECT_EQ(mirrors.size(), 8U);
  EXPECT_GT(begins.size(), 20U);
}

TEST_F(Volumes, ObjectsAreWhollyInPatchesThatAreBiased) {
  write_case("a");
  const auto num_with_object = [&](const VolumeOptions& options) {
    const VolumeSource random = source(options);
    int count = 0;
    for (std::int64_t visit = 0; visit < 30; ++visit)
      count += std::ranges::count(read(random, {0, visit}).label, 3) == 8 ? 1 : 0;
    return count;
  };
  EXPECT_EQ(num_with_object(at_random(1, 0)), 30);
  EXPECT_LT(num_with_object(at_random(0, 0)), 15);
}

TEST_F(Volumes, OutermostVoxelsAreRepeatedWhereACaseIsShort) {
  write_case("a", {2, 8, 1});
  for (VolumeOptions wide : {options(), at_random(1, 0)}) {
    wide.patch = {5, 8, 3};
    const Patch patch = read(source(wide), {0, 0});
    std::size_t i = 0;
    for (const int z : {0, 0, 1, 1, 1}) {
      for (int y = 0; y < 8; ++y) {
        for (int x = 0; x < 3; ++x) EXPECT_EQ(patch.image[i++], place(z, y, 0));
      }
    }
  }
}

TEST_F(Volumes, IntensitiesAreCutAndScaled) {
  write_case("a");
  VolumeOptions cut = options();
  cut.intensities = {300, 400, 350, 10};
  for (const float value : read(source(cut), {0, 0}).image) {
    EXPECT_GE(value, -5);
    EXPECT_LE(value, 5);
  }
  EXPECT_EQ(read(source(cut), {0, 0}).image[7], (323.0F - 350) / 10);
}

TEST_F(Volumes, WhatIsKeptIsReadOnce) {
  write_case("a");
  write_case("b");
  const auto bytes_of = [&](std::int64_t keep_bytes) {
    VolumeOptions kept = options();
    kept.keep_bytes = keep_bytes;
    const VolumeSource volumes = source(kept);
    data::ReadParts parts;
    const data::CountedReading counted(&parts);
    for (std::int64_t visit = 0; visit < 3; ++visit) {
      for (std::int64_t index : {0, 1}) read(volumes, {index, visit});
    }
    return parts.take().at("read").bytes;
  };
  const std::int64_t one_case = 2 * (352 + 4 * kShape.count());
  EXPECT_EQ(bytes_of(1 << 20), 2 * one_case);
  EXPECT_EQ(bytes_of(5 * kShape.count()), (1 + 3) * one_case) << "room for one of two";
  EXPECT_EQ(bytes_of(0), 6 * one_case);
}

TEST_F(Volumes, AreFoundAsTheyUsuallyLie) {
  write_case("b");
  write_case("a");
  const auto files = find_volumes(path("images"), path("labels"));
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files[0].name, "a");
  std::filesystem::rename(path("images/b.nii"), path("images/b_0000.nii"));
  EXPECT_EQ(find_volumes(path("images"), path("labels"))[1].labels, path("labels/b.nii"));
  for (const char* name : {"case_2", "case_1"}) {
    write("kits/" + std::string(name) + "/imaging.nii", nifti_of(kShape, place));
    write("kits/" + std::string(name) + "/segmentation.nii", nifti_of(kShape, place));
  }
  EXPECT_EQ(find_volumes(path("kits"))[1].name, "case_2");
  std::filesystem::remove(path("labels/a.nii"));
  const auto refusal = [&](const std::string& images, const std::string& labels) {
    return test::error_of([&] { find_volumes(images, labels); }).message();
  };
  EXPECT_THAT(refusal(path("images"), path("labels")),
              HasSubstr("has no labels of a; expected a.nii"));
  EXPECT_THAT(refusal(path("images"), ""), HasSubstr("name the folder of the labels"));
  EXPECT_THAT(refusal(path("nothing"), path("labels")), HasSubstr("cannot list"));
}

TEST_F(Volumes, WhatIsWrongIsNamed) {
  write_case("a");
  const auto message = [&] {
    return test::error_of([&] { read(source(options()), {0, 0}); }).message();
  };
  write("labels/a.nii", nifti_of({9, 8, 6}, place));
  EXPECT_THAT(message(), HasSubstr("labels of 9 x 8 x 6 voxels, a volume of 9 x 8 x 7"));
  write("labels/a.nii", nifti_of(kShape, place));
  EXPECT_THAT(message(), HasSubstr("label 256 is not from 0 to 255"));
  write("images/a.nii", "nothing");
  EXPECT_THAT(message(), HasSubstr("images/a.nii"));
  EXPECT_THAT(test::error_of([&] { source(at_random(2, 0)); }).message(),
              HasSubstr("foreground_share is 2"));
  EXPECT_THAT(test::error_of([&] { source(at_random(0, -1)); }).message(),
              HasSubstr("flip_probability is -1"));
  VolumeOptions bad = at_random(0, 0);
  bad.random->intensities.noise_probability = 2;
  EXPECT_THAT(test::error_of([&] { source(bad); }).message(), HasSubstr("noise_probability is 2"));
}

/// Of patches that lie at the same place with and without: what was done to each is a function of the visit alone.
TEST_F(Volumes, BrightnessAndNoiseComeFromStreamsOfTheirOwn) {
  write_case("a");
  VolumeOptions still = at_random(0, 0.5);
  still.intensities = {-1e6F, 1e6F, -1000, 1000};  // values from 1 to 1.9
  VolumeOptions both = still;
  both.random->intensities = {.brightness_probability = 0.5,
                              .brightness_low = 2,
                              .brightness_high = 3,
                              .noise_probability = 0.5,
                              .noise_deviation = 0.01};
  VolumeOptions bright = both, noisy = both;
  bright.random->intensities.noise_probability = 0;
  noisy.random->intensities.brightness_probability = 0;
  const VolumeSource plain = source(still), brighter = source(bright), with_noise = source(noisy),
                     with_both = source(both);
  int num_brighter = 0, num_noisy = 0;
  double sum = 0, squares = 0;
  for (std::int64_t visit = 0; visit < 200; ++visit) {
    const Patch own = read(plain, {0, visit}), light = read(brighter, {0, visit});
    const Patch noise = read(with_noise, {0, visit}), all = read(with_both, {0, visit});
    EXPECT_EQ(own.label, all.label);
    const float factor = light.image[5] / own.image[5];
    num_brighter += light.image != own.image ? 1 : 0;
    num_noisy += noise.image != own.image ? 1 : 0;
    if (light.image != own.image) {
      EXPECT_GE(factor, 1.999F);
      EXPECT_LT(factor, 3.001F);
    }
    for (std::size_t i = 0; i < own.image.size(); ++i) {
      EXPECT_FLOAT_EQ(light.image[i], own.image[i] * factor);
      const float added = noise.image[i] - own.image[i];
      EXPECT_NEAR(all.image[i], light.image[i] + added, 1e-6) << "the same noise";
      sum += added;
      squares += added * added;
    }
  }
  EXPECT_NEAR(num_brighter, 100, 35);
  EXPECT_NEAR(num_noisy, 100, 35);
  const double count = 24.0 * num_noisy;  // deviations of U(0, 0.01): in squares a third of 0.01^2
  EXPECT_NEAR(sum / count, 0, 0.001);
  EXPECT_NEAR(squares / count, 1e-4 / 3, 1e-5);
}

TEST_F(Volumes, NoiseIsThatOfItsPlaceWhateverTheRows) {
  const RandomIntensities noise({.brightness_probability = 0, .noise_probability = 1}, 3, 4);
  std::vector<float> whole(23), parts(23);
  noise.apply(0, whole);
  for (std::size_t begin = 0, step = 1; begin < 23; begin += step++) {
    step = std::min(step, 23 - begin);
    noise.apply(static_cast<std::int64_t>(begin), std::span(parts).subspan(begin, step));
  }
  EXPECT_EQ(parts, whole);
  // As the header says it, a run that resumes elsewhere needs the same.
  const double deviation = philox({}, {4, 0})[1] * 0x1p-32 * 0.1;
  for (std::uint32_t i = 0; i < 23; ++i) {
    const auto words = philox({i / 2, 0, 1, 0}, {4, 0});
    const double radius = std::sqrt(-2 * std::log((words[0] + 0.5) / 0x1p32));
    const double angle = 2 * std::acos(-1.0) * (words[1] + 0.5) / 0x1p32;
    const double normal = radius * (i % 2 == 0 ? std::cos(angle) : std::sin(angle));
    EXPECT_FLOAT_EQ(whole[i], static_cast<float>(deviation * normal));
  }
}

/// The file's voxels are 1 x 1 x 1: twice as long ones are half as many, the first and the last at their places.
TEST_F(Volumes, CasesAreBroughtToOneSpacing) {
  write_case("a");
  VolumeOptions coarse = options();
  coarse.spacing = {2, 2, 1};
  coarse.patch = {4, 4, 7};
  const Patch patch = read(source(coarse), {0, 0});
  for (std::size_t z = 0; z < 4; ++z) {
    for (std::size_t y = 0; y < 4; ++y) {
      for (std::size_t x = 0; x < 7; ++x) {
        const double expected = 100.0 * 8 * static_cast<double>(z) / 3 +
                                10.0 * 7 * static_cast<double>(y) / 3 + static_cast<double>(x);
        EXPECT_NEAR(patch.image[(z * 4 + y) * 7 + x], expected, 1e-3);
        const std::size_t from_z = z * 9 / 4, from_y = y * 2;  // nearest
        const bool is_object = from_z / 2 == 3 && (from_y - 1) / 2 == 2 && x / 2 == 2;
        EXPECT_EQ(patch.label[(z * 4 + y) * 7 + x], is_object ? 3 : 0);
      }
    }
  }
  coarse.spacing = {1, 1, 1};
  coarse.patch = options().patch;
  EXPECT_EQ(read(source(coarse), {0, 0}).image, read(source(options()), {0, 0}).image);
  coarse.spacing = {0, 1, 1};
  EXPECT_THAT(test::error_of([&] { source(coarse); }).message(),
              HasSubstr("voxels of 0 to such of 0 along z"));
}

TEST_F(Volumes, IdentityTellsDataAndOptions) {
  write_case("a");
  std::set<std::string> identities = {source(options()).identity(),
                                      source(at_random(0.4, 0.5)).identity(),
                                      source(at_random(0.4, 0.3)).identity()};
  VolumeOptions other = options();
  other.intensities.mean = 1;
  identities.insert(source(other).identity());
  other.keep_bytes = 0;
  identities.insert(source(other).identity());
  EXPECT_EQ(identities.size(), 4U) << "what is kept changes nothing";
  other.spacing = kKitsSpacing;
  identities.insert(source(other).identity());
  other = at_random(0.4, 0.5);
  other.random->intensities.noise_probability = 0.2;
  identities.insert(source(other).identity());
  other.random->intensities.brightness_high = 2;
  identities.insert(source(other).identity());
  EXPECT_EQ(identities.size(), 7U);
  write_case("b");
  EXPECT_FALSE(identities.contains(source(options()).identity()));
}

}  // namespace
}  // namespace trireme::volume
