#include "packs/volume/data/nifti.h"

#include <gtest/gtest.h>
#include <nifti2_io.h>
#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>

#include "tests/base/error_of.h"

namespace trireme::volume {
namespace {

using Bytes = std::vector<std::byte>;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

template <typename T>
void append(Bytes& bytes, const T& value) {
  const auto raw = std::as_bytes(std::span(&value, 1));
  bytes.insert(bytes.end(), raw.begin(), raw.end());
}

/// A header of 4 x 3 x 2 voxels (x, y, z) of 1.5 x 2 x 3 mm, stored as they are.
template <typename Header>
Header make_header(int type) {
  Header header = {};
  header.sizeof_hdr = sizeof header;
  constexpr bool kIsFirst = sizeof(Header) == sizeof(nifti_1_header);
  std::memcpy(header.magic, kIsFirst ? "n+1" : "n+2\0\r\n\032\n", sizeof header.magic);
  header.datatype = static_cast<decltype(header.datatype)>(type);
  int bytes = 0, swap_size = 0;
  nifti_datatype_sizes(type, &bytes, &swap_size);
  header.bitpix = static_cast<decltype(header.bitpix)>(8 * bytes);
  header.vox_offset = sizeof header + 4;
  int i = 0;
  for (const int side : {3, 4, 3, 2, 1, 1, 1, 1}) header.dim[i++] = side;
  i = 0;
  for (const float spacing : {1.0F, 1.5F, 2.0F, 3.0F}) header.pixdim[i++] = spacing;
  return header;
}

/// The file of a header and its values 0, 1, 2 ...; `swapped` in the other byte order.
template <typename T, typename Header>
Bytes make_file(const Header& header, bool is_swapped = false) {
  Header written = header;
  if (is_swapped && sizeof(Header) == sizeof(nifti_1_header)) {
    nifti_swap_as_nifti1(reinterpret_cast<nifti_1_header*>(&written));
  } else if (is_swapped) {
    nifti_swap_as_nifti2(reinterpret_cast<nifti_2_header*>(&written));
  }
  Bytes file;
  append(file, written);
  append(file, std::int32_t{0});
  for (int i = 0; i < 24; ++i) {
    auto bytes = std::bit_cast<std::array<std::byte, sizeof(T)>>(static_cast<T>(i));
    if (is_swapped) std::ranges::reverse(bytes);
    append(file, bytes);
  }
  return file;
}

Bytes pack(const Bytes& file) {
  z_stream stream = {};
  deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  Bytes packed(file.size() + 100);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(file.data()));
  stream.avail_in = static_cast<uInt>(file.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

template <typename T, typename Header>
void expect_counting(int type) {
  for (const bool is_swapped : {false, true}) {
    const Bytes file = make_file<T>(make_header<Header>(type), is_swapped);
    for (const Bytes& form : {file, pack(file)}) {
      const auto image = parse_nifti(form, "x");
      const auto labels = parse_nifti_labels(form, "x");
      EXPECT_EQ(image.header.shape, (VolumeShape{2, 3, 4}));
      EXPECT_EQ(image.header.spacing, (std::array<double, 3>{3, 2, 1.5}));
      ASSERT_EQ(image.values.size(), 24) << type;
      for (int i = 0; i < 24; ++i) {
        EXPECT_EQ(image.values[i], i);
        EXPECT_EQ(labels.values[i], i);
      }
    }
  }
}

template <typename T>
void expect_counting_in_both(int type) {
  expect_counting<T, nifti_1_header>(type);
  expect_counting<T, nifti_2_header>(type);
}

TEST(NiftiTest, ReadsScalarTypesInBothByteOrdersAndVersions) {
  expect_counting_in_both<std::uint8_t>(NIFTI_TYPE_UINT8);
  expect_counting_in_both<std::int8_t>(NIFTI_TYPE_INT8);
  expect_counting_in_both<std::uint16_t>(NIFTI_TYPE_UINT16);
  expect_counting_in_both<std::int16_t>(NIFTI_TYPE_INT16);
  expect_counting_in_both<std::uint32_t>(NIFTI_TYPE_UINT32);
  expect_counting_in_both<std::int32_t>(NIFTI_TYPE_INT32);
  expect_counting_in_both<std::uint64_t>(NIFTI_TYPE_UINT64);
  expect_counting_in_both<std::int64_t>(NIFTI_TYPE_INT64);
  expect_counting_in_both<float>(NIFTI_TYPE_FLOAT32);
  expect_counting_in_both<double>(NIFTI_TYPE_FLOAT64);
}

TEST(NiftiTest, Scales) {
  auto header = make_header<nifti_1_header>(NIFTI_TYPE_INT16);
  header.scl_slope = 0.5F;
  header.scl_inter = -3;
  const Bytes file = make_file<std::int16_t>(header);
  EXPECT_EQ(parse_nifti(file, "x").values[5], -0.5F);
  EXPECT_EQ(test::error_of([&] { parse_nifti_labels(file, "x"); }).message(),
            "x: NIfTI: voxel (0, 0, 1) is no label: not a whole number of 32 bits");
  header.scl_slope = 2;
  EXPECT_EQ(parse_nifti_labels(make_file<std::int16_t>(header), "x").values[5], 7);
  header.scl_slope = 0;  // not scaled, whatever the intercept
  EXPECT_EQ(parse_nifti(make_file<std::int16_t>(header), "x").values[5], 5);
}

TEST(NiftiTest, ReadsMoreDimensionsAndFewer) {
  auto header = make_header<nifti_1_header>(NIFTI_TYPE_UINT8);
  header.dim[0] = 4;
  header.dim[3] = 1;
  header.dim[4] = 2;
  const NiftiHeader four = parse_nifti_header(make_file<std::uint8_t>(header), "x");
  EXPECT_EQ(four.shape, (VolumeShape{1, 3, 4}));
  EXPECT_EQ(four.num_volumes, 2);
  header.dim[0] = 1;
  EXPECT_EQ(parse_nifti(make_file<std::uint8_t>(header), "x").values.size(), 4);
}

TEST(NiftiTest, BeginsAfterTheHeaderWhereNoOffsetIsSaid) {
  auto header = make_header<nifti_1_header>(NIFTI_TYPE_UINT8);
  header.vox_offset = 0;
  EXPECT_EQ(parse_nifti(make_file<std::uint8_t>(header), "x").values[1], 1);
}

TEST(NiftiTest, TellsWhereVoxelsLie) {
  auto header = make_header<nifti_1_header>(NIFTI_TYPE_UINT8);
  using Row = std::array<double, 4>;
  const auto read = [&] { return parse_nifti_header(make_file<std::uint8_t>(header), "x"); };
  EXPECT_EQ(read().orientation, "RAS");
  EXPECT_EQ(read().affine[2], (Row{0, 0, 3, 0}));
  header.qform_code = 1;  // turned half about z
  header.quatern_d = 1;
  header.qoffset_x = 7;
  EXPECT_EQ(read().orientation, "LPS");
  EXPECT_EQ(read().affine[0], (Row{-1.5, 0, 0, 7}));
  header.sform_code = 2;  // wins
  header.srow_x[1] = -2;
  header.srow_y[2] = 3;
  header.srow_z[0] = -1.5;
  header.srow_z[3] = 9;
  EXPECT_EQ(read().orientation, "ILA");
  EXPECT_EQ(read().affine[2], (Row{-1.5, 0, 0, 9}));
}

TEST(NiftiTest, ANegativeSpacingIsASpacing) {
  auto header = make_header<nifti_1_header>(NIFTI_TYPE_UINT8);
  header.qform_code = 1;
  header.pixdim[1] = -2;
  const auto read = [&] { return parse_nifti_header(make_file<std::uint8_t>(header), "x"); };
  using Row = std::array<double, 4>;
  EXPECT_EQ(read().affine[0], (Row{2, 0, 0, 0}));
  EXPECT_EQ(read().spacing, (std::array<double, 3>{3, 2, 2}));
  header.qform_code = 0;
  EXPECT_EQ(read().affine[0], (Row{2, 0, 0, 0}));
  header.dim[0] = 2;  // has no third axis
  header.pixdim[3] = 0;
  EXPECT_EQ(read().spacing[0], 1);
  EXPECT_EQ(read().affine[2], (Row{0, 0, 1, 0}));
}

TEST(NiftiTest, NamesTheVolumeThatHasNoLabel) {
  auto header = make_header<nifti_1_header>(NIFTI_TYPE_FLOAT32);
  header.dim[0] = 4;
  header.dim[3] = 1;
  header.dim[4] = 2;
  Bytes file = make_file<float>(header);
  std::memcpy(file.data() + 352 + 4 * 19, &kNan, sizeof kNan);
  EXPECT_EQ(test::error_of([&] { parse_nifti_labels(file, "x"); }).message(),
            "x: NIfTI: volume 1, voxel (0, 1, 3) is no label: not a whole number of 32 bits");
}

/// The error of a header that `change` has damaged.
template <typename Change>
std::string error_after(const Change& change) {
  auto header = make_header<nifti_1_header>(NIFTI_TYPE_FLOAT32);
  change(header);
  const Bytes file = make_file<float>(header);
  return test::error_of([&] { parse_nifti_labels(file, "x.nii"); }).message();
}

TEST(NiftiTest, NamesTheFieldThatIsBad) {
  EXPECT_EQ(error_after([](auto& h) { h.dim[0] = 0; }),
            "x.nii: NIfTI: dim[0] is 0, expected 1 to 7");
  EXPECT_EQ(error_after([](auto& h) { h.dim[2] = 0; }),
            "x.nii: NIfTI: dim[2] is 0, expected 1 or more");
  EXPECT_EQ(error_after([](auto& h) { h.dim[2] = -5; }),
            "x.nii: NIfTI: dim[2] is -5, expected 1 or more");
  EXPECT_EQ(error_after([](auto& h) { h.dim[2] = 4; }),
            "x.nii: NIfTI: the file has 448 bytes, the header promises 480");
  EXPECT_EQ(error_after([](auto& h) {
              h.dim[0] = 7;
              std::fill_n(h.dim + 1, 7, std::int16_t{32767});
            }),
            "x.nii: NIfTI: dim promises more than 2^60 bytes");
  EXPECT_EQ(error_after([](auto& h) { h.datatype = NIFTI_TYPE_COMPLEX64; }),
            "x.nii: NIfTI: datatype is 32 (COMPLEX64), expected integers or floating point");
  EXPECT_EQ(error_after([](auto& h) { h.vox_offset = 348; }),
            "x.nii: NIfTI: vox_offset is 348.000000, expected 352 or more");
  EXPECT_EQ(error_after([](auto& h) { h.vox_offset = kNan; }),
            "x.nii: NIfTI: vox_offset is nan, expected 352 or more");
  EXPECT_EQ(error_after([](auto& h) { h.scl_slope = 1, h.scl_inter = kNan; }),
            "x.nii: NIfTI: scl_inter is no number");
  EXPECT_EQ(error_after([](auto& h) { h.sform_code = 1, h.srow_y[1] = kNan; }),
            "x.nii: NIfTI: the sform is no matrix of numbers");
  EXPECT_EQ(error_after([](auto& h) { h.pixdim[2] = kNan; }),
            "x.nii: NIfTI: pixdim[2] is no number");
  EXPECT_EQ(error_after([](auto& h) { h.pixdim[3] = 0; }),
            "x.nii: NIfTI: pixdim[3] is 0, expected the voxels' spacing");
  EXPECT_EQ(error_after([](auto& h) { h.magic[1] = 'i'; }),
            "x.nii: NIfTI: header and values are two files; join them into one .nii");
  EXPECT_EQ(error_after([](auto& h) { h.magic[0] = 'x'; }),
            "x.nii: NIfTI: it does not begin as NIfTI-1 or NIfTI-2 does");
}

TEST(NiftiTest, NamesTheVoxelThatIsNoLabel) {
  Bytes file = make_file<float>(make_header<nifti_1_header>(NIFTI_TYPE_FLOAT32));
  for (const float value : {kNan, 0.5F, 3e9F, -3e9F, 1e30F}) {
    std::memcpy(file.data() + 352 + 4 * 19, &value, sizeof value);
    EXPECT_EQ(test::error_of([&] { parse_nifti_labels(file, "x"); }).message(),
              "x: NIfTI: voxel (1, 1, 3) is no label: not a whole number of 32 bits");
  }
  EXPECT_EQ(parse_nifti(file, "x").values[19], 1e30F);
}

TEST(NiftiTest, TakesNoMemoryForWhatThePackedFileCannotHold) {
  auto header = make_header<nifti_2_header>(NIFTI_TYPE_FLOAT64);
  for (const int i : {1, 2, 3}) header.dim[i] = 1 << 17;
  const Bytes packed = pack(make_file<double>(header));
  const std::string message = test::error_of([&] { parse_nifti(packed, "x.nii.gz"); }).message();
  EXPECT_NE(message.find("cannot hold the 18014398509482528 that the header promises"),
            std::string::npos)
      << message;
}

template <typename Header>
void expect_refusal_of_each_cut() {
  const Bytes file = make_file<float>(make_header<Header>(NIFTI_TYPE_FLOAT32));
  for (std::size_t size = 0; size < file.size(); ++size) {
    const Bytes cut(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_EQ(test::error_of([&] { parse_nifti(cut, "x"); }).kind(), ErrorKind::kCorruptData)
        << size;
  }
}

TEST(NiftiTest, NoticesThatAFileIsCutOff) {
  expect_refusal_of_each_cut<nifti_1_header>();
  expect_refusal_of_each_cut<nifti_2_header>();
}

TEST(NiftiTest, NoticesDamageOfPackedFiles) {
  const Bytes file = make_file<double>(make_header<nifti_1_header>(NIFTI_TYPE_FLOAT64));
  const Bytes packed = pack(file);
  for (std::size_t size = 0; size < packed.size(); ++size) {
    const Bytes cut(packed.begin(), packed.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_EQ(test::error_of([&] { parse_nifti(cut, "x"); }).kind(), ErrorKind::kCorruptData)
        << size;
  }
  Bytes changed = packed;
  changed[changed.size() - 6] ^= std::byte{1};  // of the checksum
  EXPECT_EQ(test::error_of([&] { parse_nifti(changed, "x"); }).message(),
            "x: gzip: incorrect data check");
  Bytes joined(packed), rest = pack(Bytes(file.begin() + 400, file.end()));
  joined = pack(Bytes(file.begin(), file.begin() + 400));  // two members
  joined.insert(joined.end(), rest.begin(), rest.end());
  joined.resize(joined.size() + 512);  // and padding
  EXPECT_EQ(parse_nifti(joined, "x").values[23], 23);
}

TEST(NiftiTest, ReadsFiles) {
  const auto path = std::filesystem::temp_directory_path() / "trireme_nifti_test.nii";
  const Bytes bytes = make_file<float>(make_header<nifti_1_header>(NIFTI_TYPE_FLOAT32));
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
  EXPECT_EQ(read_nifti(path).values[7], 7);
  EXPECT_EQ(read_nifti_labels(path).values[7], 7);
  EXPECT_EQ(read_nifti_header(path).datatype, "FLOAT32");
  std::filesystem::remove(path);
  EXPECT_EQ(test::error_of([&] { read_nifti(path); }).kind(), ErrorKind::kIo);
}

}  // namespace
}  // namespace trireme::volume
