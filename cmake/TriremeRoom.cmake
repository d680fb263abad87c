# A room: one folder under trireme/ or packs/, one static library, one test program.
#
#   trireme_room(plan/layout
#     SOURCES plan.cc                       relative to the room
#     LOOPS kernels/x.cc                    sources too: loops over elements, vectorised in every build
#     CUDA cuda/x.cu                        sources too, with TRIREME_CUDA; NO_CUDA: without
#     HEADERS plan.h                        all of them: ./dev lint compiles each alone
#     USES plan/graph                       rooms; each one must be allowed by trireme/rooms.txt
#     LIBRARIES nlohmann_json::nlohmann_json    what the room's sources include from outside
#     TESTS plan_test.cc                    relative to tests/<room>/
#     TEST_USES data tests/models           rooms and test libraries that only the tests need
#     TEST_TOGETHER ofi                     as trireme_tests has TOGETHER
#     CUDA_TESTS cuda/x_gpu_test.cc         of label gpu, with TRIREME_CUDA
#     FUZZ plan_file_fuzz.cc)               relative to tests/<room>/; corpus in corpus/plan_file/
#
# Every room uses base. A room without sources becomes an interface library. LIBRARIES are private:
# a room that includes a vendor's header through another room names the library itself.

# Target of a room or test library: plan/layout -> trireme::plan_layout.
function(trireme_room_targets result)
  set(targets "")
  foreach(room IN LISTS ARGN)
    string(REPLACE "/" "_" name "${room}")
    list(APPEND targets "trireme::${name}")
  endforeach()
  set(${result} "${targets}" PARENT_SCOPE)
endfunction()

# Declares the library of `path` from sources in the current folder.
function(_trireme_library path kind sources uses libraries)
  string(REPLACE "/" "_" name "trireme_${path}")
  string(REGEX REPLACE "^trireme_" "trireme::" alias "${name}")
  trireme_room_targets(uses ${uses})
  if(sources)
    add_library(${name} STATIC ${sources})
    trireme_compile(${name} ${kind} ${libraries})
    target_link_libraries(${name} PUBLIC ${uses})
    # What headers make every unit instantiate costs more than most sources.
    set_target_properties(${name} PROPERTIES UNITY_BUILD ${TRIREME_JOIN_SOURCES}
                                             UNITY_BUILD_BATCH_SIZE 8)
    if(path MATCHES "^benchmarks/")
      set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL TRUE)
    endif()
  else()
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE ${uses})
  endif()
  add_library(${alias} ALIAS ${name})
endfunction()

function(trireme_room room)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TEST_TOGETHER"
                        "SOURCES;LOOPS;CUDA;NO_CUDA;HEADERS;USES;LIBRARIES;TESTS;TEST_USES;CUDA_TESTS;FUZZ")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "trireme_room(${room}): unknown ${arg_UNPARSED_ARGUMENTS}")
  endif()
  set(uses ${arg_USES})
  if(NOT room STREQUAL "base")
    list(PREPEND uses base)
  endif()
  set(sources ${arg_SOURCES} ${arg_LOOPS} ${arg_NO_CUDA})
  if(TRIREME_NVCC AND arg_CUDA)
    set(sources ${arg_SOURCES} ${arg_LOOPS} ${arg_CUDA})
    list(APPEND arg_LIBRARIES CUDA::cudart_static)
  endif()
  # errno and traps would prevent the vectors.
  set_source_files_properties(${arg_LOOPS} PROPERTIES
    COMPILE_OPTIONS "-O3;-fno-math-errno;-fno-trapping-math" SKIP_PRECOMPILE_HEADERS ON)
  _trireme_library(${room} library "${sources}" "${uses}" "${arg_LIBRARIES}")
  foreach(header IN LISTS arg_HEADERS)
    if(NOT EXISTS "${CMAKE_CURRENT_SOURCE_DIR}/${header}")
      message(FATAL_ERROR "trireme_room(${room}): no header ${header}")
    endif()
  endforeach()
  set_property(GLOBAL APPEND PROPERTY TRIREME_ROOMS ${room})
  if(TRIREME_TESTS)
    set_property(GLOBAL PROPERTY "TRIREME_LIBRARIES_OF_${room}" "${arg_LIBRARIES}")
    trireme_tests(${room} LABEL unit TOGETHER "${arg_TEST_TOGETHER}" SOURCES ${arg_TESTS} USES ${arg_TEST_USES})
    if(TRIREME_NVCC)
      trireme_tests(${room} LABEL gpu SOURCES ${arg_CUDA_TESTS} USES ${arg_TEST_USES})
    endif()
    foreach(source IN LISTS arg_FUZZ)
      trireme_fuzz(${room} ${source} ${arg_TEST_USES})
    endforeach()
  endif()
endfunction()

# A library for tests of several rooms, sources in the current folder: tests/models.
function(trireme_test_library path)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;HEADERS;USES;LIBRARIES")
  _trireme_library(${path} program "${arg_SOURCES}" "${arg_USES}" "${arg_LIBRARIES}")
endfunction()

# The test program of a room for one label: unit, multiprocess, slow or gpu. trireme_room makes the
# one for unit; call this for others. Each test is an entry of ctest; in units with torch each suite,
# since loading torch takes longer than most tests. Of parameterised suites, the tests whose parameter
# begins with TOGETHER are one entry: for what takes long to load, too. Programs for slow and gpu, and all of benchmarks, which
# take a fifth of the time to build, are built by the targets tests_slow and tests_gpu alone.
#
#   trireme_tests(engine/reference LABEL slow SOURCES many_cuts_test.cc USES tests/models)
function(trireme_tests room)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "LABEL;TOGETHER" "SOURCES;USES")
  if(NOT arg_SOURCES OR NOT TRIREME_TESTS OR TRIREME_FUZZ)
    return()
  endif()
  string(REPLACE "/" "_" name "trireme_${room}_${arg_LABEL}_test")
  list(TRANSFORM arg_SOURCES PREPEND "${PROJECT_SOURCE_DIR}/tests/${room}/")
  get_property(libraries GLOBAL PROPERTY "TRIREME_LIBRARIES_OF_${room}")
  trireme_room_targets(uses ${room} ${arg_USES})
  add_executable(${name} ${arg_SOURCES})
  trireme_compile(${name} program ${uses} ${libraries} GTest::gmock trireme_test_main)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY
                                           "${PROJECT_BINARY_DIR}/tests/${room}")
  # What GoogleTest and torch's headers make every unit instantiate costs more than a file's tests.
  set_target_properties(${name} PROPERTIES UNITY_BUILD ${TRIREME_JOIN_SOURCES} UNITY_BUILD_BATCH_SIZE 0)

  set(TEST_OPTIONAL FALSE)
  set(label ${arg_LABEL})
  if(room MATCHES "^benchmarks/")
    set(label slow)
  endif()
  if(label MATCHES "^(slow|gpu)$")
    set(TEST_OPTIONAL TRUE)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL TRUE)
    if(NOT TARGET tests_${label})
      add_custom_target(tests_${label})
    endif()
    add_dependencies(tests_${label} ${name})
  endif()
  set(TEST_PROPERTIES LABELS ${label} TIMEOUT 600 WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
  if(arg_LABEL MATCHES "^(multiprocess|gpu)$")
    # They share a GPU, or kill processes and say how soon others must end: one at a time, beside others, and
    # from the beginning on. Those of wire/, whose processes do without torch, have a lock of their own.
    set(lock processes)
    if(room MATCHES "^wire/")
      set(lock processes_of_wire)
    endif()
    list(APPEND TEST_PROPERTIES RESOURCE_LOCK ${lock} COST 30)
  endif()
  set(TEST_PREFIX "${room}")
  if(NOT arg_LABEL STREQUAL "unit")
    string(APPEND TEST_PREFIX "/${arg_LABEL}")
  endif()
  set(TEST_EACH test)
  set(TEST_TOGETHER "${arg_TOGETHER}")
  if("Torch::cpu" IN_LIST libraries)
    list(APPEND TEST_PROPERTIES ENVIRONMENT OMP_NUM_THREADS=1)
    if(NOT label STREQUAL "slow")  # default tests look at what is measured, not at how fast it is
      list(APPEND TEST_PROPERTIES ENVIRONMENT_MODIFICATION TRIREME_MEASURE=set:quick)
    endif()
    if(arg_LABEL STREQUAL "unit")
      set(TEST_EACH suite)
    endif()
  endif()
  set(TEST_PROGRAM "$<TARGET_FILE:${name}>")
  set(TEST_LISTING "${CMAKE_CURRENT_BINARY_DIR}/${name}_listing.cmake")
  set(script "")
  foreach(variable IN ITEMS PROGRAM PREFIX EACH TOGETHER LISTING PROPERTIES OPTIONAL)
    string(APPEND script "set(TEST_${variable} [==[${TEST_${variable}}]==])\n")
  endforeach()
  string(APPEND script "include([==[${PROJECT_SOURCE_DIR}/cmake/discover_tests.cmake]==])\n")
  file(GENERATE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/${name}_tests.cmake" CONTENT "${script}")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES
                                         "${CMAKE_CURRENT_BINARY_DIR}/${name}_tests.cmake")
endfunction()

# A fuzz target: x_fuzz.cc defines LLVMFuzzerTestOneInput, tests/<room>/corpus/x/ holds its inputs. Further
# arguments: rooms and test libraries that the target uses beside its own room.
#
# In the fuzz preset libFuzzer runs it for a minute, and the target fuzz_targets builds all of them. Elsewhere the
# corpus is replayed, and some hundred inputs that are made of it, as a test. Rooms with torch are not in the fuzz
# preset: for them those inputs go on for a minute as a slow test.
function(trireme_fuzz room source)
  string(REGEX REPLACE "_fuzz\\.cc$" "" unit "${source}")
  string(REPLACE "/" "_" name "trireme_${room}_${unit}_fuzz")
  set(corpus "${PROJECT_SOURCE_DIR}/tests/${room}/corpus/${unit}")
  get_property(libraries GLOBAL PROPERTY "TRIREME_LIBRARIES_OF_${room}")
  trireme_room_targets(uses ${room} ${ARGN})
  add_executable(${name} "${PROJECT_SOURCE_DIR}/tests/${room}/${source}")
  trireme_compile(${name} library ${uses} ${libraries} trireme_fuzz_main)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY
                                           "${PROJECT_BINARY_DIR}/tests/${room}")
  if(TRIREME_FUZZ)
    # New inputs go to the build folder; those that matter are copied to the corpus by hand.
    set(test "${room}/fuzz.${unit}")
    set(found "${PROJECT_BINARY_DIR}/fuzz/${room}/${unit}")
    file(MAKE_DIRECTORY "${found}")
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    add_test(NAME "${test}" COMMAND ${name} -max_total_time=60 -timeout=5 -malloc_limit_mb=64
                                    -artifact_prefix=${found}- "${found}" "${corpus}")
    if(NOT TARGET fuzz_targets)
      add_custom_target(fuzz_targets)
    endif()
    add_dependencies(fuzz_targets ${name})
  else()
    set(test "${room}/replay.${unit}")
    add_test(NAME "${test}" COMMAND ${name} "${corpus}")
    if("Torch::cpu" IN_LIST libraries)
      add_test(NAME "${room}/slow/fuzz.${unit}" COMMAND ${name} "${corpus}" 60)
      set_tests_properties("${room}/slow/fuzz.${unit}" PROPERTIES LABELS slow TIMEOUT 120)
      if(NOT TARGET tests_slow)
        add_custom_target(tests_slow)
      endif()
      add_dependencies(tests_slow ${name})
    endif()
  endif()
  set_tests_properties("${test}" PROPERTIES LABELS unit TIMEOUT 600)
endfunction()
