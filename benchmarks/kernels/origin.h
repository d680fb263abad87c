#pragma once

#include <filesystem>
#include <string>

namespace trireme::kernels::bench {

/// What figures are of.
struct Origin {
  std::string commit;     ///< "1a2b3c4d5e6f", with "+changes" where files differ from it.
  std::string processor;  ///< As the system names it.
  std::string time;       ///< 2026-11-23 12:00, UTC.
};

/// source   a folder of the repository; where git cannot tell its commit that is "unknown".
Origin origin_of(const std::filesystem::path& source);

}  // namespace trireme::kernels::bench
