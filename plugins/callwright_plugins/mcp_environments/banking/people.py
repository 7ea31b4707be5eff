"""Whom the rows name: the customer at the counter, and those whom that customer pays."""

from __future__ import annotations

from callwright.environments.people.person import People, Person
from callwright.environments.world import World
from callwright_plugins.mcp_environments.banking.knowledge import at_the_counter
from callwright_plugins.mcp_environments.banking.rows import Account, Customer, Payee


def named(world: World) -> People:
    """The customer at the counter, and the other customers who are among their payees."""
    me = at_the_counter(world)
    if me is None:
        return People()
    owners = {account.iban: account.customer_id for account in world.rows(Account)}
    paid = dict.fromkeys(owners.get(payee.iban, me.id) for payee in world.find(Payee, customer_id=me.id))
    return People(_person(me), [_person(world.need(Customer, one)) for one in paid if one != me.id])


def _person(customer: Customer) -> Person:
    return Person(customer.name, customer.email, customer.phone, city=customer.city)
