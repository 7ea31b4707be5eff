"""Tools that read the catalogue: categories, products, stock, reviews."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field
from typing_extensions import TypedDict

from callwright.environments.paging import Cursor, Limit, Page, page
from callwright.environments.world import World
from callwright.tools.spec import FunctionTool, ToolError, tool
from callwright_plugins.mcp_environments.shopping.rows import Category, Product, Review, Variant
from callwright_plugins.mcp_environments.shopping.views import (
    ProductSummary,
    ProductView,
    product_summary,
    product_view,
    stars,
)
from callwright_plugins.mcp_environments.times import iso

ProductId = Annotated[str, Field(description="Product id, such as P00012, from search_products.", max_length=40)]
CategoryFilter = Annotated[
    str, Field(description="Category id from list_categories; a department includes its categories.", max_length=40)
]


class CategoryView(TypedDict):
    """A category and how many products are directly in it."""

    category_id: str
    name: str
    parent_id: str | None
    product_count: Annotated[int, Field(description="Directly in it.")]
    return_days: Annotated[int, Field(description="After delivery; 0: final sale.")]


class StockView(TypedDict):
    """The stock of a variant."""

    variant_id: str
    options: dict[str, str]
    stock: int
    available: Annotated[bool, Field(description="In stock and still sold.")]


class Comparison(TypedDict):
    """Products side by side, with the ids of the cheapest and the best rated one."""

    products: list[ProductView]
    cheapest_product_id: str
    best_rated_product_id: str | None


class ReviewView(TypedDict):
    """A review."""

    review_id: str
    author: str
    stars: int
    title: str
    text: str
    posted_at: str


@tool(read_only=True, discovery=True)
def list_categories(
    world: World,
    /,
    parent_id: Annotated[str, Field(description="Only the categories inside this one; empty for all.")] = "",
    limit: Limit = 50,
    cursor: Cursor = "",
) -> Page[CategoryView]:
    """List the departments and categories of the shop with the days in which their items can be returned."""
    if parent_id:
        world.need(Category, parent_id, message=f"there is no category {parent_id!r}")
        found = world.find(Category, parent_id=parent_id)
    else:
        found = list(world.rows(Category))
    return page(
        found,
        lambda category: {
            "category_id": category.id,
            "name": category.name,
            "parent_id": category.parent_id or None,
            "product_count": world.count(Product, category_id=category.id),
            "return_days": category.return_days,
        },
        limit,
        cursor,
    )


@tool(read_only=True, discovery=True)
def search_products(
    world: World,
    /,
    query: Annotated[
        str, Field(description="Words that all occur in name, brand or description; empty for any.", max_length=100)
    ] = "",
    category_id: CategoryFilter = "",
    min_price_cents: Annotated[int, Field(ge=0, description="Lowest price in cents.")] = 0,
    max_price_cents: Annotated[int | None, Field(ge=0, description="Highest price in cents; null for any.")] = None,
    min_rating: Annotated[float, Field(ge=0, le=5, description="Lowest mean rating in stars; 0 for any.")] = 0,
    in_stock_only: Annotated[bool, Field(description="Only products of which a variant is in stock.")] = False,
    sort: Annotated[
        Literal["relevance", "price_asc", "price_desc", "rating"],
        Field(description="Order of the results; relevance keeps the order of the catalogue."),
    ] = "relevance",
    limit: Limit = 20,
    cursor: Cursor = "",
) -> Page[ProductSummary]:
    """Find products by words, category, price and rating. Results carry the variant ids that add_to_cart needs."""
    if category_id:
        world.need(Category, category_id, message=f"there is no category {category_id!r}")
    if max_price_cents is not None and max_price_cents < min_price_cents:
        raise ToolError("BAD_RANGE", f"max_price_cents {max_price_cents} is below min_price_cents {min_price_cents}")
    inside = {category_id, *(one.id for one in world.find(Category, parent_id=category_id))}
    texts = world.prepared(Product, _with_text)
    for word in query.lower().split():
        texts = [pair for pair in texts if word in pair[1]]
    chosen = [
        product
        for product, _ in texts
        if not product.discontinued and (not category_id or product.category_id in inside)
    ]
    if min_price_cents or max_price_cents is not None or in_stock_only or sort.startswith("price"):
        price, stocked = world.derived(_prices, Variant)
        highest = max_price_cents if max_price_cents is not None else max(price.values(), default=0)
        chosen = [
            product
            for product in chosen
            if min_price_cents <= price.get(product.id, 0) <= highest and (product.id in stocked or not in_stock_only)
        ]
        if sort.startswith("price"):
            chosen.sort(key=lambda product: price.get(product.id, 0), reverse=sort == "price_desc")
    if min_rating or sort == "rating":
        rating = {name: mean or 0 for name, (mean, _) in world.derived(stars, Review).items()}
        chosen = [product for product in chosen if rating.get(product.id, 0) >= min_rating]
        if sort == "rating":
            chosen.sort(key=lambda product: -rating.get(product.id, 0))
    return page(chosen, lambda product: product_summary(world, product), limit, cursor)


def _with_text(product: Product) -> tuple[Product, str]:
    return product, f"{product.name} {product.brand} {product.description}".lower()


def _prices(world: World) -> tuple[dict[str, int], set[str]]:
    """The lowest price of every product, and which products are in stock; one pass instead of a search for each."""
    price: dict[str, int] = {}
    stocked = set()
    for variant in world.rows(Variant):
        name = variant.product_id
        price[name] = min(variant.price_cents, price.get(name, variant.price_cents))
        if variant.stock:
            stocked.add(name)
    return price, stocked


@tool(read_only=True)
def get_product(world: World, /, product_id: ProductId) -> ProductView:
    """Everything about a product: its variants with price and stock, order limit and return conditions."""
    return product_view(world, need_product(world, product_id))


@tool(read_only=True)
def get_stock(
    world: World,
    /,
    product_id: ProductId,
    variant_id: Annotated[str, Field(description="Only this variant; empty for all of them.", max_length=40)] = "",
) -> list[StockView]:
    """How many units of each variant of a product are in stock now."""
    product = need_product(world, product_id)
    variants = world.find(Variant, product_id=product.id)
    if variant_id:
        variants = [variant for variant in variants if variant.id == variant_id]
        if not variants:
            raise ToolError("NOT_FOUND", f"product {product_id} has no variant {variant_id!r}; get_product lists them")
    return [
        {
            "variant_id": variant.id,
            "options": dict(variant.options),
            "stock": variant.stock,
            "available": variant.stock > 0 and not product.discontinued,
        }
        for variant in variants
    ]


@tool(read_only=True)
def compare_products(
    world: World,
    /,
    product_ids: Annotated[
        list[str], Field(min_length=2, max_length=5, description="Two to five different product ids.")
    ],
) -> Comparison:
    """Show products side by side and name the cheapest and the best rated. Ids that do not exist are left out with a
    warning; at least two must exist.
    """
    known = [product for name in dict.fromkeys(product_ids) if (product := world.get(Product, name)) is not None]
    missing = [name for name in dict.fromkeys(product_ids) if world.get(Product, name) is None]
    if len(known) < 2:
        raise ToolError(
            "NOT_FOUND" if missing else "SAME_PRODUCT",
            f"a comparison needs two different products; unknown: {', '.join(missing)[:200] or 'none'}",
        )
    if missing:
        world.warn("NOT_FOUND", f"left out, because they do not exist: {', '.join(missing)[:200]}")
    views = [product_view(world, product) for product in known]
    rated = [view for view in views if view["rating"] is not None]
    return {
        "products": views,
        "cheapest_product_id": min(views, key=lambda view: view["price_from_cents"])["product_id"],
        "best_rated_product_id": max(rated, key=lambda view: view["rating"] or 0)["product_id"] if rated else None,
    }


@tool(read_only=True)
def list_reviews(
    world: World,
    /,
    product_id: ProductId,
    min_stars: Annotated[int, Field(ge=1, le=5, description="Only reviews with at least so many stars.")] = 1,
    max_stars: Annotated[int, Field(ge=1, le=5, description="Only reviews with at most so many stars.")] = 5,
    limit: Limit = 20,
    cursor: Cursor = "",
) -> Page[ReviewView]:
    """List the reviews of a product, newest first."""
    need_product(world, product_id)
    reviews = [one for one in world.find(Review, product_id=product_id) if min_stars <= one.stars <= max_stars]
    reviews.sort(key=lambda review: (-review.posted_at, review.id))
    return page(
        reviews,
        lambda review: {
            "review_id": review.id,
            "author": review.author,
            "stars": review.stars,
            "title": review.title,
            "text": review.text,
            "posted_at": iso(review.posted_at),
        },
        limit,
        cursor,
    )


def need_product(world: World, product_id: str) -> Product:
    """The product; fails with ``NOT_FOUND``."""
    return world.need(Product, product_id, message=f"there is no product {product_id!r}; use search_products")


CATALOGUE: Final[list[FunctionTool]] = [
    search_products,
    list_categories,
    get_product,
    get_stock,
    compare_products,
    list_reviews,
]
