#pragma once

#include <archive.h>
#include <archive_entry.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace trireme::data {

/// Name and content; a name that ends in a slash is a folder.
using TarMember = std::pair<std::string, std::string>;

/// Writes a tar file of these members, in this order; `format` as libarchive calls it.
inline void write_tar(const std::filesystem::path& path, const std::vector<TarMember>& members,
                      const char* format = "pax", const char* filter = nullptr) {
  archive* tar = archive_write_new();
  archive_write_set_format_by_name(tar, format);
  if (filter) archive_write_add_filter_by_name(tar, filter);
  archive_write_open_filename(tar, path.c_str());
  for (const auto& [name, content] : members) {
    archive_entry* entry = archive_entry_new();
    archive_entry_set_pathname(entry, name.c_str());
    archive_entry_set_filetype(entry, name.ends_with('/') ? AE_IFDIR : AE_IFREG);
    archive_entry_set_size(entry, static_cast<la_int64_t>(content.size()));
    archive_entry_set_perm(entry, 0644);
    archive_write_header(tar, entry);
    archive_write_data(tar, content.data(), content.size());
    archive_entry_free(entry);
  }
  archive_write_close(tar);
  archive_write_free(tar);
}

}  // namespace trireme::data
