#include "packs/volume/data/nifti.h"

#include <nifti2_io.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>

#include "packs/volume/data/gzip.h"
#include "trireme/base/mapped_file.h"
#include "trireme/error.h"

// The library turns a header into affine and orientation; both want a header that is sound, and it
// prints where one is not. So what it would stumble over is checked before, and values are read
// here, from bytes whose number was compared with the header's promise.

namespace trireme::volume {
namespace {

/// What is checked of a header, in this machine's byte order.
struct Fields {
  NiftiHeader header;
  int type = 0;
  std::int64_t begin = 0;  ///< Of the values, in bytes.
  std::int64_t size = 0;   ///< Of the values, in bytes.
  bool is_swapped = false;
};

[[noreturn]] void refuse(const std::string& name, const std::string& what,
                         ErrorKind kind = ErrorKind::kCorruptData) {
  throw Error(kind, name + ": NIfTI: " + what);
}

/// Whether values of the type can be read.
bool is_scalar(int type) {
  switch (type) {
    case NIFTI_TYPE_UINT8:
    case NIFTI_TYPE_INT8:
    case NIFTI_TYPE_UINT16:
    case NIFTI_TYPE_INT16:
    case NIFTI_TYPE_UINT32:
    case NIFTI_TYPE_INT32:
    case NIFTI_TYPE_UINT64:
    case NIFTI_TYPE_INT64:
    case NIFTI_TYPE_FLOAT32:
    case NIFTI_TYPE_FLOAT64:
      return true;
    default:
      return false;
  }
}

/// Calls `use` with a value of the stored type, which is_scalar.
template <typename Use>
void with_type(int type, const Use& use) {
  switch (type) {
    case NIFTI_TYPE_UINT8:
      return use(std::uint8_t{});
    case NIFTI_TYPE_INT8:
      return use(std::int8_t{});
    case NIFTI_TYPE_UINT16:
      return use(std::uint16_t{});
    case NIFTI_TYPE_INT16:
      return use(std::int16_t{});
    case NIFTI_TYPE_UINT32:
      return use(std::uint32_t{});
    case NIFTI_TYPE_INT32:
      return use(std::int32_t{});
    case NIFTI_TYPE_UINT64:
      return use(std::uint64_t{});
    case NIFTI_TYPE_INT64:
      return use(std::int64_t{});
    case NIFTI_TYPE_FLOAT32:
      return use(float{});
    default:
      return use(double{});
  }
}

std::string name_of_type(int type) {
  const std::string name = nifti_datatype_to_string(type);  // "NIFTI_TYPE_INT16"
  return name.substr(name.rfind('_') + 1);
}

void swap(nifti_1_header& header) { nifti_swap_as_nifti1(&header); }
void swap(nifti_2_header& header) { nifti_swap_as_nifti2(&header); }
nifti_image* convert(const nifti_1_header& header) {
  return nifti_convert_n1hdr2nim(header, nullptr);
}
nifti_image* convert(const nifti_2_header& header) {
  return nifti_convert_n2hdr2nim(header, nullptr);
}

/// Fills shape, number of volumes and size; a header of int16 or int64 dimensions.
template <typename Header>
void read_shape(const Header& raw, const std::string& name, Fields& fields) {
  const auto num_dimensions = static_cast<std::int64_t>(raw.dim[0]);
  if (num_dimensions < 1 || num_dimensions > 7) {
    refuse(name, "dim[0] is " + std::to_string(num_dimensions) + ", expected 1 to 7");
  }
  int bytes = 0, swap_size = 0;
  nifti_datatype_sizes(raw.datatype, &bytes, &swap_size);
  std::array<std::int64_t, 8> sides;
  sides.fill(1);
  fields.size = bytes;
  for (std::int64_t i = 1; i <= num_dimensions; ++i) {
    sides[i] = raw.dim[i];
    if (sides[i] < 1) {
      refuse(name, "dim[" + std::to_string(i) + "] is " + std::to_string(sides[i]) +
                       ", expected 1 or more");
    }
    if (sides[i] > (std::int64_t{1} << 60) / fields.size) {
      refuse(name, "dim promises more than 2^60 bytes");
    }
    fields.size *= sides[i];
  }
  fields.header.shape = {sides[3], sides[2], sides[1]};
  fields.header.num_volumes = sides[4] * sides[5] * sides[6] * sides[7];
}

template <typename Header>
void read_scale(const Header& raw, const std::string& name, NiftiHeader& header) {
  const auto slope = static_cast<double>(raw.scl_slope);
  if (slope == 0 || !std::isfinite(slope)) return;  // by the standard: as stored
  header.slope = slope;
  header.intercept = static_cast<double>(raw.scl_inter);
  if (!std::isfinite(header.intercept)) refuse(name, "scl_inter is no number");
}

template <typename Header>
void read_begin(const Header& raw, const std::string& name, Fields& fields) {
  // The header, and 4 bytes that say whether there are extensions.
  constexpr std::int64_t kLeast = sizeof(Header) + 4;
  const auto begin = static_cast<double>(raw.vox_offset);
  const bool is_good = begin == 0 || (begin >= kLeast && begin <= 0x1p60);
  if (!is_good || begin != std::floor(begin)) {
    refuse(name, "vox_offset is " + std::to_string(begin) + ", expected " + std::to_string(kLeast) +
                     " or more");
  }
  fields.begin = begin == 0 ? kLeast : static_cast<std::int64_t>(begin);
}

std::string orientation_of(const nifti_dmat44& affine) {
  std::array<int, 3> axes = {};
  nifti_dmat44_to_orientation(affine, &axes[0], &axes[1], &axes[2]);
  std::string letters;
  for (const int axis : axes) {
    letters += axis == NIFTI_L2R   ? 'R'
               : axis == NIFTI_R2L ? 'L'
               : axis == NIFTI_P2A ? 'A'
               : axis == NIFTI_A2P ? 'P'
               : axis == NIFTI_I2S ? 'S'
               : axis == NIFTI_S2I ? 'I'
                                   : '?';
  }
  return letters;
}

/// Makes spacings positive: the library would take a negative one for 1. Those of axes that the file
/// has not may be 0, which counts as 1.
template <typename Header>
void make_spacings_positive(Header& raw, const std::string& name) {
  for (int axis = 1; axis <= 3; ++axis) {
    auto& spacing = raw.pixdim[axis];
    if (!std::isfinite(spacing)) refuse(name, "pixdim[" + std::to_string(axis) + "] is no number");
    if (spacing == 0 && axis <= raw.dim[0]) {
      refuse(name, "pixdim[" + std::to_string(axis) + "] is 0, expected the voxels' spacing");
    }
    spacing = spacing == 0 ? 1 : std::abs(spacing);
  }
}

template <typename Header>
void read_space(Header raw, const std::string& name, NiftiHeader& header) {
  make_spacings_positive(raw, name);
  const std::unique_ptr<nifti_image, decltype(&nifti_image_free)> image(convert(raw),
                                                                        nifti_image_free);
  if (image == nullptr) refuse(name, "the header is damaged");
  const bool is_sform = raw.sform_code > 0;
  const nifti_dmat44& affine = is_sform ? image->sto_xyz : image->qto_xyz;
  for (int row = 0; row < 3; ++row) {
    std::copy_n(affine.m[row], 4, header.affine[row].begin());
    header.spacing[2 - row] = static_cast<double>(raw.pixdim[1 + row]);
    const auto is_number = [](double x) { return std::isfinite(x); };
    if (!std::ranges::all_of(header.affine[row], is_number)) {
      refuse(name, is_sform ? "the sform is no matrix of numbers" : "the qform is none of numbers");
    }
  }
  header.orientation = orientation_of(affine);
}

template <typename Header>
Fields read_fields(std::span<const std::byte> bytes, const std::string& name) {
  Header raw;
  if (bytes.size() < sizeof raw) refuse(name, "the file is cut off within the header");
  std::memcpy(&raw, bytes.data(), sizeof raw);
  Fields fields;
  fields.is_swapped = raw.sizeof_hdr != static_cast<int>(sizeof raw);
  if (fields.is_swapped) swap(raw);
  if (raw.sizeof_hdr != static_cast<int>(sizeof raw)) {
    refuse(name, "sizeof_hdr is " + std::to_string(raw.sizeof_hdr));
  }
  if (raw.magic[1] != '+') {
    refuse(name, "header and values are two files; join them into one .nii",
           ErrorKind::kUnavailable);
  }
  if (!is_scalar(raw.datatype)) {
    refuse(name,
           "datatype is " + std::to_string(raw.datatype) + " (" + name_of_type(raw.datatype) +
               "), expected integers or floating point",
           ErrorKind::kUnavailable);
  }
  fields.type = raw.datatype;
  fields.header.datatype = name_of_type(raw.datatype);
  read_shape(raw, name, fields);
  read_begin(raw, name, fields);
  read_scale(raw, name, fields.header);
  read_space(raw, name, fields.header);
  return fields;
}

/// Of the file's first bytes, unpacked.
Fields fields_of(std::span<const std::byte> bytes, const std::string& name) {
  const int version =
      bytes.size() < sizeof(nifti_1_header)
          ? -1
          : nifti_header_version(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (version == 1) return read_fields<nifti_1_header>(bytes, name);
  if (version == 2) return read_fields<nifti_2_header>(bytes, name);
  refuse(name, "it does not begin as NIfTI-1 or NIfTI-2 does");
}

Fields read_fields_of_file(std::span<const std::byte> file, const std::string& name) {
  static std::once_flag is_quiet;
  std::call_once(is_quiet, [] { nifti_set_debug_level(0); });
  if (!is_gzip(file)) return fields_of(file, name);
  // As short as a file may be that holds one byte.
  std::vector<std::byte> first = unpack_gzip(file, sizeof(nifti_1_header) + 5, name);
  if (nifti_header_version(reinterpret_cast<const char*>(first.data()), first.size()) == 2) {
    first = unpack_gzip(file, sizeof(nifti_2_header), name);
  }
  return fields_of(first, name);
}

/// The value at `bytes`, which need not be aligned.
template <typename Stored, bool IsSwapped>
Stored load(const std::byte* bytes) {
  Stored stored;
  std::memcpy(&stored, bytes, sizeof stored);
  if constexpr (IsSwapped) {
    auto own = std::bit_cast<std::array<std::byte, sizeof stored>>(stored);
    std::ranges::reverse(own);
    stored = std::bit_cast<Stored>(own);
  }
  return stored;
}

template <typename Stored>
float to_value(Stored stored, const NiftiHeader& header, float /*as*/) {
  if (header.slope == 1 && header.intercept == 0) return static_cast<float>(stored);
  return static_cast<float>(header.slope * static_cast<double>(stored) + header.intercept);
}

/// A number that no label is, where the value is not one.
template <typename Stored>
std::int64_t to_value(Stored stored, const NiftiHeader& header, std::int64_t /*as*/) {
  constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
  if constexpr (std::is_integral_v<Stored>) {
    if (header.slope == 1 && header.intercept == 0) {
      return std::in_range<std::int64_t>(stored) ? static_cast<std::int64_t>(stored) : kNone;
    }
  }
  const double value = header.slope * static_cast<double>(stored) + header.intercept;
  return std::abs(value) < 0x1p32 && value == std::floor(value) ? static_cast<std::int64_t>(value)
                                                                : kNone;
}

/// The values' bytes; `kept` holds them where the file is packed.
std::span<const std::byte> values_of(std::span<const std::byte> file, const std::string& name,
                                     const Fields& fields, std::vector<std::byte>& kept) {
  const std::int64_t end = fields.begin + fields.size;
  if (is_gzip(file)) {
    kept = unpack_gzip(file, end, name);
    file = kept;
  } else if (std::ssize(file) < end) {
    refuse(name, "the file has " + std::to_string(file.size()) + " bytes, the header promises " +
                     std::to_string(end));
  }
  return file.subspan(fields.begin, fields.size);
}

/// Goes over stored values, each of which it turns into a Value: so that memory for all of them is
/// written once, when a vector is made of it.
template <typename Value, typename Stored, bool IsSwapped>
class Values {
 public:
  // NOLINTBEGIN(readability-identifier-naming): the language's names
  using iterator_category = std::random_access_iterator_tag;
  using value_type = Value;
  using difference_type = std::ptrdiff_t;
  using pointer = const Value*;
  using reference = Value;
  // NOLINTEND(readability-identifier-naming)

  Values(const std::byte* at, const NiftiHeader& header) : at_(at), header_(&header) {}

  Value operator*() const { return to_value(load<Stored, IsSwapped>(at_), *header_, Value{}); }
  Values& operator++() {
    at_ += sizeof(Stored);
    return *this;
  }
  std::ptrdiff_t operator-(const Values& other) const {
    return (at_ - other.at_) / static_cast<std::ptrdiff_t>(sizeof(Stored));
  }
  bool operator==(const Values& other) const { return at_ == other.at_; }

 private:
  const std::byte* at_;
  const NiftiHeader* header_;
};

/// Calls `use(begin, end)` with the stored values as iterators over Value.
template <typename Value, typename Use>
void with_values(std::span<const std::byte> bytes, const Fields& fields, const Use& use) {
  with_type(fields.type, [&]<typename Stored>(Stored) {
    const auto go = [&]<bool IsSwapped>(std::bool_constant<IsSwapped>) {
      using Iterator = Values<Value, Stored, IsSwapped>;
      use(Iterator(bytes.data(), fields.header),
          Iterator(bytes.data() + bytes.size(), fields.header));
    };
    fields.is_swapped ? go(std::true_type()) : go(std::false_type());
  });
}

/// "voxel (1, 2, 3)", of several volumes after which one.
std::string place_of(const NiftiHeader& header, std::int64_t value) {
  const std::int64_t count = header.shape.count();
  const std::string voxel = "voxel " + to_text(header.shape.voxel_at(value % count));
  return header.num_volumes == 1 ? voxel : "volume " + std::to_string(value / count) + ", " + voxel;
}

std::int64_t num_values(const NiftiHeader& header) {
  return header.num_volumes * header.shape.count();
}

}  // namespace

NiftiVolume<float> parse_nifti(std::span<const std::byte> file, const std::string& name) {
  const Fields fields = read_fields_of_file(file, name);
  std::vector<std::byte> kept;
  const std::span<const std::byte> bytes = values_of(file, name, fields, kept);
  NiftiVolume<float> volume{fields.header, {}};
  with_values<float>(bytes, fields,
                     [&](auto begin, auto end) { volume.values = std::vector<float>(begin, end); });
  return volume;
}

NiftiVolume<std::int32_t> parse_nifti_labels(std::span<const std::byte> file,
                                             const std::string& name) {
  const Fields fields = read_fields_of_file(file, name);
  std::vector<std::byte> kept;
  const std::span<const std::byte> bytes = values_of(file, name, fields, kept);
  NiftiVolume<std::int32_t> volume{fields.header,
                                   std::vector<std::int32_t>(num_values(fields.header))};
  with_values<std::int64_t>(bytes, fields, [&](auto at, auto end) {
    for (std::int64_t i = 0; at != end; ++at, ++i) {
      const std::int64_t value = *at;
      if (!std::in_range<std::int32_t>(value)) {
        refuse(name, place_of(fields.header, i) + " is no label: not a whole number of 32 bits");
      }
      volume.values[i] = static_cast<std::int32_t>(value);
    }
  });
  return volume;
}

NiftiHeader parse_nifti_header(std::span<const std::byte> file, const std::string& name) {
  return read_fields_of_file(file, name).header;
}

NiftiVolume<float> read_nifti(const std::filesystem::path& path) {
  return parse_nifti(MappedFile(path).bytes(), path.string());
}

NiftiVolume<std::int32_t> read_nifti_labels(const std::filesystem::path& path) {
  return parse_nifti_labels(MappedFile(path).bytes(), path.string());
}

NiftiHeader read_nifti_header(const std::filesystem::path& path) {
  return parse_nifti_header(MappedFile(path).bytes(), path.string());
}

}  // namespace trireme::volume
