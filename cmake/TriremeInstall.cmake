# What is installed: one shared library for the core, one for each pack and one for C, the programs,
# the public headers, and what find_package(Trireme) and pkg-config read.
#
# The shared libraries are made of the objects of rooms: nothing is compiled twice.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(_package_folder "${CMAKE_INSTALL_LIBDIR}/cmake/Trireme")

# Objects of rooms, and the libraries from outside that they need.
function(_trireme_objects objects libraries)
  foreach(room IN LISTS ARGN)
    string(REPLACE "/" "_" target "trireme_${room}")
    get_target_property(type ${target} TYPE)
    if(NOT type STREQUAL "INTERFACE_LIBRARY")
      list(APPEND found "$<TARGET_OBJECTS:${target}>")
      get_target_property(links ${target} LINK_LIBRARIES)
      list(FILTER links EXCLUDE REGEX "^trireme")
      list(APPEND outside ${links})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES outside)
  set(${objects} ${found} PARENT_SCOPE)
  set(${libraries} ${outside} PARENT_SCOPE)
endfunction()

# Installs a library as a component that can be installed, and found, without the others.
function(_trireme_export target component)
  install(TARGETS ${target} EXPORT Trireme-${component} LIBRARY COMPONENT ${component})
  install(EXPORT Trireme-${component} NAMESPACE Trireme:: COMPONENT ${component}
          DESTINATION "${CMAKE_INSTALL_LIBDIR}/cmake/Trireme")
endfunction()

# The shared library lib<NAME>.so of rooms, which others know as Trireme::<COMPONENT>.
#
#   _trireme_shared(trireme_vision COMPONENT vision ROOMS packs/vision USES Trireme::trireme)
function(_trireme_shared name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "COMPONENT" "ROOMS;USES")
  _trireme_objects(objects libraries ${arg_ROOMS})
  set(target "${name}_shared")
  add_library(${target} SHARED ${objects})
  add_library(Trireme::${arg_COMPONENT} ALIAS ${target})
  target_link_libraries(
    ${target}
    PRIVATE trireme_flags ${libraries}
    PUBLIC ${arg_USES} "$<BUILD_INTERFACE:Torch::cpu>" "$<INSTALL_INTERFACE:Trireme::torch>")
  target_include_directories(
    ${target} PUBLIC "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>"
                     "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_link_options(${target} PRIVATE "LINKER:-Bsymbolic-functions")
  if(NOT arg_COMPONENT STREQUAL "trireme")
    # Loading a pack registers its operators; nothing need refer to it by name.
    target_link_options(${target} INTERFACE "LINKER:--no-as-needed")
  endif()
  set_target_properties(
    ${target}
    PROPERTIES LINKER_LANGUAGE CXX OUTPUT_NAME ${name} EXPORT_NAME ${arg_COMPONENT}
               SOVERSION "${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}"
               LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib"
               INSTALL_RPATH "$ORIGIN;${TRIREME_TORCH_RPATH}")
  _trireme_export(${target} ${arg_COMPONENT})
endfunction()

# A program that is installed beside the libraries.
function(trireme_install_program name)
  set_target_properties(
    ${name} PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR};${TRIREME_TORCH_RPATH}")
  install(TARGETS ${name} RUNTIME COMPONENT trireme)
endfunction()

get_property(_rooms GLOBAL PROPERTY TRIREME_ROOMS)
if(TRIREME_TORCH)
  set(_core ${_rooms})
  list(FILTER _core EXCLUDE REGEX "^(packs|recipes|benchmarks)/|^wire/c$|^data/arrow$")
  _trireme_shared(trireme COMPONENT trireme ROOMS ${_core})
  foreach(_pack IN ITEMS text vision speech volume ranking)
    set(_of_pack ${_rooms})
    list(FILTER _of_pack INCLUDE REGEX "^packs/${_pack}(/|$)")
    _trireme_shared(trireme_${_pack} COMPONENT ${_pack} ROOMS ${_of_pack} USES trireme_shared)
  endforeach()
  if(TARGET trireme_tables)
    install(TARGETS trireme_tables LIBRARY COMPONENT trireme)
  endif()
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/trireme" TYPE INCLUDE COMPONENT trireme)
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/python/trireme" COMPONENT trireme
          DESTINATION "${CMAKE_INSTALL_DATADIR}/trireme/python"
          FILES_MATCHING PATTERN "*" PATTERN "__pycache__" EXCLUDE)
endif()

add_library(Trireme::wire ALIAS trireme_wire_shared)
target_include_directories(
  trireme_wire_shared INTERFACE "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>"
                                "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
set_target_properties(trireme_wire_shared PROPERTIES EXPORT_NAME wire)
_trireme_export(trireme_wire_shared wire)
install(FILES "${PROJECT_SOURCE_DIR}/include/trireme/wire.h" COMPONENT wire
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/trireme")
file(RELATIVE_PATH TRIREME_TO_PREFIX "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" /prefix)
configure_file("${PROJECT_SOURCE_DIR}/cmake/trireme-wire.pc.in" trireme-wire.pc @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/trireme-wire.pc" COMPONENT wire
        DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/TriremeConfig.cmake.in"
                              TriremeConfig.cmake INSTALL_DESTINATION "${_package_folder}")
write_basic_package_version_file(TriremeConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/TriremeConfig.cmake"
              "${PROJECT_BINARY_DIR}/TriremeConfigVersion.cmake"
        DESTINATION "${_package_folder}")
