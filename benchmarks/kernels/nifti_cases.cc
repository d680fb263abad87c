#include "benchmarks/kernels/nifti_cases.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "benchmarks/kernels/random_values.h"
#include "packs/volume/data/nifti.h"
#include "trireme/error.h"

namespace trireme::kernels::bench {
namespace {

constexpr volume::VolumeShape kShape{100, 400, 400};

/// A body around the middle axis, of soft tissue with noise; air around it.
std::vector<std::int16_t> draw_tomogram() {
  std::vector<float> noise(kShape.count());
  fill_normal(noise, 1, 20);
  std::vector<std::int16_t> values(kShape.count());
  for (std::int64_t i = 0; i < kShape.count(); ++i) {
    const auto [z, y, x] = kShape.voxel_at(i);
    const std::int64_t dy = y - kShape.height / 2, dx = x - kShape.width / 2;
    const bool is_body = dy * dy * 2 + dx * dx < 160 * 160;
    values[i] = static_cast<std::int16_t>(is_body ? 40 + noise[i] : -1000);
  }
  return values;
}

/// A header of NIfTI-1, then the values.
std::string make_file(const std::vector<std::int16_t>& values) {
  std::string file(352, '\0');
  const auto put = [&](std::size_t offset, auto value) {
    std::memcpy(&file[offset], &value, sizeof value);
  };
  put(0, std::int32_t{348});
  std::size_t dim = 40;
  for (const std::int64_t side : {std::int64_t{3}, kShape.width, kShape.height, kShape.depth,
                                  std::int64_t{1}, std::int64_t{1}, std::int64_t{1}}) {
    put(dim, static_cast<std::int16_t>(side));
    dim += 2;
  }
  put(70, std::int16_t{4});  // int16
  put(72, std::int16_t{16});
  for (std::size_t axis = 0; axis < 4; ++axis) put(76 + 4 * axis, 1.0F);
  put(108, 352.0F);
  std::memcpy(&file[344], "n+1", 4);
  return file.append(reinterpret_cast<const char*>(values.data()), 2 * values.size());
}

void write_file(const std::filesystem::path& path, const std::string& bytes) {
  const bool is_packed = path.extension() == ".gz";
  const gzFile file = gzopen(path.c_str(), is_packed ? "wb" : "wbT");
  const bool is_good =
      file != nullptr && gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size())) > 0;
  if (gzclose(file) != Z_OK || !is_good) {
    throw Error(ErrorKind::kIo, path.string() + " could not be written");
  }
}

class NiftiCase final : public Case {
 public:
  NiftiCase(const CaseSetting& setting, const std::string& name) : path_(setting.folder / name) {
    write_file(path_, make_file(draw_tomogram()));
    inputs_.options["file"] = name;
    std::ranges::copy(kShape.sides(), inputs_.add<std::int64_t>("shape", {3}).begin());
  }

  const Tensors& inputs() const override { return inputs_; }

  void run() override { volume_ = volume::read_nifti(path_); }

  Tensors outputs() const override {
    Tensors outputs;
    std::ranges::copy(
        volume_.values,
        outputs.add<float>("values", {kShape.depth, kShape.height, kShape.width}).begin());
    return outputs;
  }

 private:
  const std::filesystem::path path_;
  Tensors inputs_;
  volume::NiftiVolume<float> volume_;
};

CaseEntry entry(const std::string& variant, const std::string& file, double bytes) {
  return {.name = "nifti/" + variant,
          .shape = "100 x 400 x 400, int16 to f32",
          .bytes = bytes,
          .peers = {"nibabel"},
          .make = [file](const CaseSetting& setting) {
            return std::make_unique<NiftiCase>(setting, file);
          }};
}

}  // namespace

std::vector<CaseEntry> nifti_cases() {
  return {entry("plain", "ct.nii", 6.0 * static_cast<double>(kShape.count())),
          entry("packed", "ct.nii.gz", 0)};
}

}  // namespace trireme::kernels::bench
