# Imported targets for the libraries Debian and Ubuntu ship. CAF 0.17 and nats.c come without CMake
# config files there, so they are found by header and library.
find_package(Threads REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(prometheus-cpp REQUIRED COMPONENTS core)
find_package(spdlog REQUIRED)
find_package(simdjson REQUIRED)
find_package(CLI11 REQUIRED)
# 1.81: the first packaged Boost whose co_await works with g++ 12 (docs/adr/0003).
find_package(Boost 1.81 REQUIRED COMPONENTS json)

function(infernex_import target header library)
  find_path(${target}_INCLUDE ${header} REQUIRED)
  find_library(${target}_LIBRARY ${library} REQUIRED)
  mark_as_advanced(${target}_INCLUDE ${target}_LIBRARY)
  add_library(dep::${target} UNKNOWN IMPORTED)
  set_target_properties(dep::${target} PROPERTIES
    IMPORTED_LOCATION ${${target}_LIBRARY}
    INTERFACE_SYSTEM_INCLUDE_DIRECTORIES ${${target}_INCLUDE}
    INTERFACE_LINK_LIBRARIES Threads::Threads)
endfunction()

infernex_import(caf caf/all.hpp caf_core)
infernex_import(nats nats/nats.h nats)
infernex_import(flatbuffers flatbuffers/flatbuffers.h flatbuffers)
infernex_import(zmq zmq.hpp zmq)
infernex_import(msgpuck msgpuck.h msgpuck)
infernex_import(xxhash xxhash.h xxhash)

find_program(FLATC flatc REQUIRED)

add_library(dep_asio INTERFACE)
target_link_libraries(dep_asio INTERFACE Boost::headers Threads::Threads)
target_compile_definitions(dep_asio INTERFACE
  BOOST_ASIO_NO_DEPRECATED BOOST_ASIO_DISABLE_BOOST_COROUTINE
  BOOST_DISABLE_PRAGMA_MESSAGE BOOST_ASIO_DISABLE_BOOST_DATE_TIME)
add_library(dep::asio ALIAS dep_asio)
