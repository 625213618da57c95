// The index of a block in a slab, against the division that it replaces.
#include <pagesift/back/page_run.hpp>

#include <doctest/doctest.h>

#include <cstddef>

using pagesift::block_index;
using pagesift::default_alignment;

TEST_CASE("the index of a block is the quotient, for every slab class and offset") {
  for (pagesift::class_index i = 0; i <= pagesift::class_of(pagesift::max_slab_block_bytes); ++i) {
    const std::size_t block = pagesift::block_bytes(i);
    const std::size_t slab = pagesift::slab_pages(block) * pagesift::page_bytes;
    REQUIRE(slab < block_index::max_slab_bytes);
    const block_index index{block};
    bool equal = true;
    for (std::size_t offset = 0; offset < slab; offset += default_alignment) {
      equal = equal && index.of(offset) == offset / block && index.of(offset + 1) == offset / block;
    }
    CHECK_MESSAGE(equal, "blocks of ", block, " bytes");
  }
}

TEST_CASE("the index of a block is the quotient for the largest offsets of any block size") {
  bool equal = true;
  for (std::size_t block = default_alignment; block <= block_index::max_block_bytes;
       block += default_alignment) {
    const block_index index{block};
    for (std::size_t offset = block_index::max_slab_bytes - 2 * block;
         offset < block_index::max_slab_bytes; offset += block / 4 + default_alignment) {
      const std::size_t unit = offset / default_alignment * default_alignment;
      equal = equal && index.of(unit) == unit / block;
    }
    const std::size_t edge = (block_index::max_slab_bytes - 1) / block * block;
    equal = equal && index.of(edge) == edge / block;
    equal = equal && (edge < block || index.of(edge - default_alignment) == edge / block - 1);
  }
  CHECK(equal);
}

TEST_CASE("in a run that is one block every offset lies in the first") {
  CHECK(block_index{}.of(0) == 0);
  CHECK(block_index{}.of(std::size_t{1} << 40) == 0);
}
