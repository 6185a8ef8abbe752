"""The shop's time zone, without a zone database: the tills have none installed."""

from __future__ import annotations

from datetime import datetime, timedelta, tzinfo

HOUR = timedelta(hours=1)


def last_sunday(year: int, month: int) -> datetime:
    """The last Sunday of a month with 31 days, at midnight."""
    last = datetime(year, month, 31)
    return last - timedelta(days=(last.weekday() + 1) % 7)


class CentralEurope(tzinfo):
    """UTC+1, and UTC+2 between the last Sundays of March and October."""

    def utcoffset(self, moment: datetime | None) -> timedelta:
        return HOUR + self.dst(moment)

    def dst(self, moment: datetime | None) -> timedelta:
        if moment is None:
            return timedelta(0)
        local = moment.replace(tzinfo=None)
        begins = last_sunday(local.year, 3).replace(hour=2)
        ends = last_sunday(local.year, 10).replace(hour=3)
        if begins <= local < ends - HOUR:
            return HOUR
        if ends - HOUR <= local < ends and moment.fold == 0:
            return HOUR
        return timedelta(0)

    def fromutc(self, moment: datetime) -> datetime:
        utc = moment.replace(tzinfo=None)
        begins = last_sunday(utc.year, 3).replace(hour=1)
        ends = last_sunday(utc.year, 10).replace(hour=1)
        if begins <= utc < ends:
            return moment + 2 * HOUR
        return (moment + HOUR).replace(fold=ends <= utc < ends + HOUR)

    def tzname(self, moment: datetime | None) -> str:
        return "CEST" if self.dst(moment) else "CET"


SHOP_ZONE = CentralEurope()
