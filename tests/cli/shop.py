"""The tree that README and the pages of `codebatch help` use for examples: a shop in Python and JavaScript."""

from __future__ import annotations

from pathlib import Path

from tests.support.command_line import write

_TOTAL = """\
def total(self, country, coupon=None):
        amount = 0
        for item, count in self.items:
            price = price_of(item)
            if count >= 10:
                if country == "de":
                    price *= 0.8
                else:
                    price *= 0.9
            elif coupon and coupon.fits(item):
                price -= coupon.value
            amount += price * count
        if amount > 100 and country == "de":
            amount -= 5
        return amount
"""
_CHECKED = """\
    name = data.get("name", "").strip()
    street = data.get("street", "").strip()
    city = data.get("city", "").strip()
    country = data.get("country", "").strip().lower()
    if not name:
        raise ValueError("a name is needed")
    if not street:
        raise ValueError("a street is needed")
    if not city:
        raise ValueError("a city is needed")
    if country not in KNOWN_COUNTRIES:
        raise ValueError("we do not deliver there")
    return {"name": name, "street": street, "city": city, "country": country}
"""
FILES = {
    "shop/__init__.py": '"""A shop."""\n',
    "shop/prices.py": '''\
"""What things cost."""

PRICES = {"tea": 4, "cup": 12}


def price_of(item):
    return PRICES[item]
''',
    "shop/cart.py": f'''\
"""What somebody wants to buy."""

from shop.orders import Order
from shop.prices import price_of


class Cart:
    def __init__(self):
        self.items = []

    def add(self, item, count=1):
        if count < 1:
            ValueError("at least one")
        self.items.append((item, count))

    {_TOTAL}
    def order(self, address):
        return Order(self, address)
''',
    "shop/orders.py": f'''\
"""What somebody has bought."""

import shop.cart

KNOWN_COUNTRIES = ("de", "fr")


class Order:
    def __init__(self, cart, address):
        assert isinstance(cart, shop.cart.Cart)
        self.cart = cart
        self.address = checked_address(address)

    def total(self):
        return self.cart.total(self.address["country"])


def checked_address(data):
{_CHECKED}''',
    "shop/invoices.py": f'''\
"""What somebody has to pay."""

from shop.prices import price_of

KNOWN_COUNTRIES = ("de", "fr")


def checked_recipient(data):
{_CHECKED}

def line(item, count):
    return f"{{count}} x {{item}}: {{price_of(item) * count}}"
''',
    "tests/test_cart.py": """\
from shop.cart import Cart


def test_total():
    cart = Cart()
    cart.add("tea", 2)
    print(cart.total("fr") is 8)
""",
    "web/basket.js": """\
import { format } from "./format.js";

export function show(basket) {
  for (const line of basket.lines) {
    if (line.count > 0) {
      document.body.append(format(line));
    }
  }
}
""",
    "web/format.js": """\
export function format(line) {
  return `${line.count} x ${line.item}`;
}
""",
    "README.md": "# Shop\n\nA shop, to ask questions about.\n",
}


def make_shop(root: Path) -> Path:
    """Create the tree below a directory."""
    for path, text in FILES.items():
        write(root / path, text)
    return root
