#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "tests/data/folder_files.h"
#include "trireme/data/fixed_records.h"

namespace trireme::data {

/// As of logs of clicks: 12 bytes, of which two are passed over.
inline std::vector<Field> click_fields() {
  return {{"label", Dtype::kU8, {}},
          {"", Dtype::kU8, {2}},
          {"id", Dtype::kI32, {}},
          {"flags", Dtype::kU8, {5}}};
}

inline std::string click(int id) {
  std::string record(12, '\0');
  record[0] = static_cast<char>(id % 2);
  record[1] = record[2] = '?';
  std::memcpy(record.data() + 3, &id, sizeof id);
  for (int i = 0; i < 5; ++i) record[7 + static_cast<std::size_t>(i)] = static_cast<char>(id >> i);
  return record;
}

inline std::string clicks(int begin, int end) {
  std::string text;
  for (int id = begin; id < end; ++id) text += click(id);
  return text;
}

/// The number of a click, or -1 where its fields contradict it.
inline int click_at(const Source& source, std::int64_t index) {
  std::byte label{};
  int id = -1;
  std::array<std::byte, 5> flags{};
  const std::span<std::byte> to[] = {{&label, 1}, std::as_writable_bytes(std::span(&id, 1)), flags};
  source.read({index}, to);
  const std::string expected = click(id);
  const bool is_whole = static_cast<char>(label) == expected[0] &&
                        std::memcmp(flags.data(), expected.data() + 7, flags.size()) == 0;
  return is_whole ? id : -1;
}

/// Files of clicks.
class ClickFiles : public FolderFiles {
 protected:
  static FixedRecordOptions options(FileAccess access = FileAccess::kDirect,
                                    int num_in_flight = 8) {
    return {.fields = click_fields(), .access = access, .num_in_flight = num_in_flight};
  }

  /// Three files of 1000, 1 and 4000 clicks.
  std::vector<std::filesystem::path> files() const {
    return {write("0.bin", clicks(0, 1000)), write("1.bin", clicks(1000, 1001)),
            write("2.bin", clicks(1001, 5001))};
  }

  /// Whether this machine reads past the system's cache.
  static bool is_direct(const Source& source) { return source.reading().starts_with("past"); }

  std::string complaint(const std::vector<std::filesystem::path>& paths,
                        FixedRecordOptions options) const {
    return error_of([&] { const FixedRecords records(paths, options); }).message();
  }
};

}  // namespace trireme::data
