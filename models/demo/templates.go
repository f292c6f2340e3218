package demo

import "fmt"

// templates are the word problems. Each has a whole, positive answer for every draw.
var templates = []func(d *draw) string{
	func(d *draw) string { // trays
		p, trays, each := d.person(), d.between(3, 12), d.between(6, 24)
		return fmt.Sprintf("%s bakes %d trays of %s with %d on each tray. %s gives away %d of them and packs the rest in "+
			"a tin. How many are in the tin?",
			p.name, trays, d.pick("cookies", "muffins", "rolls", "scones"), each, p.They(), d.between(2, trays*each-5))
	},
	func(d *draw) string { // pocket money
		p, weeks, weekly := d.person(), d.between(4, 20), d.between(3, 15)
		return fmt.Sprintf("%s saves $%d every week for %d weeks to buy a %s. If the price is $%d, how many dollars does "+
			"%s have left after buying it?",
			p.name, weekly, weeks, d.pick("kite", "lamp", "board game", "backpack"), d.between(8, weekly*weeks-1), p.they)
	},
	func(d *draw) string { // two kinds of ticket
		return fmt.Sprintf("Tickets for the school play cost $%d for adults and $%d for children. On %s, %d adults and %d "+
			"children came. How much money did the school take in?",
			d.between(6, 15), d.between(2, 5), d.pick("Friday", "Saturday", "Sunday"), d.between(20, 90), d.between(15, 80))
	},
	func(d *draw) string { // speed
		p, hours := d.person(), d.between(2, 6)
		return fmt.Sprintf("%s rides a %s at %d miles an hour for %d hours and then at %d miles an hour for %d more hours. "+
			"How many miles does %s ride in all?",
			p.name, d.pick("bicycle", "scooter", "motorbike"), d.between(10, 30), hours, d.between(6, 25), d.between(1, 4),
			p.they)
	},
	func(d *draw) string { // twice as many
		a, b := d.pair()
		return fmt.Sprintf("%s has %d %s. %s has %s as many, and then finds %d more. How many do the two of them have "+
			"together?",
			a.name, d.between(5, 40), d.pick("marbles", "stamps", "shells", "stickers"), b.name,
			d.pick("twice", "three times", "four times"), d.between(2, 15))
	},
	func(d *draw) string { // rows of seats
		return fmt.Sprintf("A hall has %d rows of %d chairs. For a concert, %d chairs are taken away from every row. "+
			"How many chairs are left in the hall?", d.between(8, 25), d.between(10, 20), d.between(1, 6))
	},
	func(d *draw) string { // sharing
		p, friends, each := d.person(), d.between(2, 7), d.between(4, 20)
		return fmt.Sprintf("%s picks %d %s and shares them evenly with %d friends, so that everybody, %s too, gets the same "+
			"number. How many does each person get?",
			p.name, (friends+1)*each, d.pick("apples", "plums", "pears", "peaches"), friends, p.name)
	},
	func(d *draw) string { // wages
		p := d.person()
		return fmt.Sprintf("%s earns $%d an hour at a %s and works %d hours a day, %d days a week. How much does %s earn in "+
			"%d weeks?", p.name, d.between(9, 25), d.pick("bakery", "garage", "library", "flower shop"), d.between(4, 8),
			d.between(3, 5), p.they, d.between(2, 6))
	},
	func(d *draw) string { // tank
		rate, minutes := d.between(3, 12), d.between(10, 40)
		return fmt.Sprintf("A pump fills a tank with %d gallons of water every minute. A leak lets %d gallons out every "+
			"minute. If the tank is empty at first, how many gallons are in it after %d minutes?",
			rate, d.between(1, rate-1), minutes)
	},
	func(d *draw) string { // percent of students
		percent := d.times(10, 1, 9)
		return fmt.Sprintf("There are %d students in a school. %d%% of them %s, and the others walk. How many students "+
			"walk?",
			d.times(10, 12, 80), percent, d.pick("take the bus", "come by bicycle", "come by train"))
	},
	func(d *draw) string { // ages
		a, b := d.pair()
		return fmt.Sprintf("%s is %d years old. %s is %d years older than %s. In %d years, how old will the two be when "+
			"their ages are added?", a.name, d.between(6, 15), b.name, d.between(2, 20), a.name, d.between(3, 12))
	},
	func(d *draw) string { // pages
		p, pages, days := d.person(), d.between(12, 30), d.between(3, 8)
		return fmt.Sprintf("%s is reading a book of %d pages. %s reads %d pages a day for %d days. How many pages does %s "+
			"still have to read?", p.name, pages*days+d.between(10, 150), p.They(), pages, days, p.they)
	},
	func(d *draw) string { // half price
		p := d.person()
		return fmt.Sprintf("A %s costs $%d and a %s costs $%d. This week the first is sold at half price. How much does %s "+
			"pay for %d of the first and %d of the second?", d.pick("scarf", "mug", "candle"), d.times(2, 3, 15),
			d.pick("hat", "plate", "basket"), d.between(4, 20), p.name, d.between(2, 5), d.between(2, 4))
	},
	func(d *draw) string { // garden
		return fmt.Sprintf("A garden is %d feet long and %d feet wide. A fence around it costs $%d a foot. How much does "+
			"the whole fence cost?", d.between(10, 60), d.between(5, 40), d.between(3, 18))
	},
	func(d *draw) string { // boxes
		size, boxes := d.between(4, 12), d.between(5, 30)
		return fmt.Sprintf("A farm packs eggs into boxes of %d. Its hens lay %d eggs in the morning and %d in the "+
			"afternoon. How many full boxes can the farm pack?", size, size*boxes, d.times(size, 2, 20))
	},
	func(d *draw) string { // battery
		p, drain := d.person(), d.between(4, 9)
		return fmt.Sprintf("The battery of %s's phone is at %d%%. It loses %d%% every hour while %s watches films. After %d "+
			"hours, at what percent is the battery?", p.name, d.between(60, 100), drain, p.they, d.between(2, 6))
	},
	func(d *draw) string { // train cars
		return fmt.Sprintf("A train has %d cars with %d passengers in each. At the next station %d people get off and %d "+
			"get on. How many passengers are on the train now?", d.between(4, 12), d.between(15, 50), d.between(5, 30),
			d.between(3, 40))
	},
	func(d *draw) string { // recipe
		p := d.person()
		return fmt.Sprintf("A recipe for 4 people takes %d cups of %s. %s cooks for %d people. How many cups does %s need?",
			d.between(2, 9), d.pick("rice", "flour", "lentils"), p.name, d.times(4, 2, 9), p.they)
	},
	func(d *draw) string { // paint
		p, walls, cans := d.person(), d.between(3, 9), d.between(2, 5)
		return fmt.Sprintf("%s paints %d walls and needs %d cans of paint for each. A can costs $%d, and %s already has %d "+
			"cans. How much does %s spend on paint?", p.name, walls, cans, d.between(7, 25), p.they, d.between(1, walls*cans-1),
			p.they)
	},
	func(d *draw) string { // laps
		a, b := d.pair()
		laps := d.between(4, 12)
		return fmt.Sprintf("%s runs %d laps around a %s of %d meters. %s runs %d laps fewer. How many meters do they run "+
			"altogether?", a.name, laps, d.pick("field", "park", "lake"), d.times(50, 4, 16), b.name, d.between(1, laps-1))
	},
	func(d *draw) string { // shelves
		shelves, each := d.between(4, 12), d.between(10, 35)
		return fmt.Sprintf("A shop has %d shelves with %d %s on each. It sells %d on Monday and half as many on Tuesday. "+
			"How many are left?", shelves, each, d.pick("bottles", "jars", "cans", "books"), d.times(2, 3, shelves*each/4))
	},
	func(d *draw) string { // club fees
		members, left := d.between(12, 40), d.between(2, 10)
		return fmt.Sprintf("A chess club with %d members asks each of them for $%d a month. After %d members leave, how "+
			"much does the club collect in %d months?", members, d.between(3, 12), left, d.between(2, 12))
	},
	func(d *draw) string { // knitting
		p := d.person()
		return fmt.Sprintf("It takes %s %d hours to knit a %s and %d hours to knit a pair of socks. How many hours does %s "+
			"need for %d of the first and %d pairs of socks?", p.name, d.between(6, 15), d.pick("sweater", "blanket", "shawl"),
			d.between(2, 5), p.they, d.between(2, 5), d.between(2, 8))
	},
	func(d *draw) string { // aquarium
		p, fish := d.person(), d.between(10, 40)
		return fmt.Sprintf("%s has %d fish. %s buys %d more, and then gives a third of all %s fish to a neighbor. How many "+
			"fish does %s keep?", p.name, fish, p.They(), 3*d.between(2, 12)+(3-fish%3)%3, p.their, p.they)
	},
}
